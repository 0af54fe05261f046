-- create_token_v1: lets a caller in from now on who presents the secret of a new token, in one transaction with its audit row.
-- The owner's alone to call: whoever may make tokens may do everything.
--
-- Arguments: p_role viewer | operator | admin, NULL for a gateway. p_scope is a gateway's: an object of lists of patterns,
--        accounts, operations and regions; a list that is absent allows all. p_secret is the SHA-256 of the secret, which has
--        256 random bits and is told to nobody but the caller. p_life is how long it lets in, NULL: until it is revoked.
--        p_actor is who makes it.
-- Answers: its number and its instants; o_expires_at is NULL without p_life.
-- Units: microseconds. Clock: clock_timestamp(), or p_now on a test clock.
-- Locks: none but the audit's.
-- SQLSTATE: RN003 from clock_v1; RN004 a life below 1; 23514 another bound of the table; 54000 there are 10,000 tokens that let
--           in, all of which each instance keeps in memory.
CREATE OR REPLACE FUNCTION ration.create_token_v1(
    p_name text, p_role text, p_scope jsonb, p_secret bytea, p_life bigint, p_actor text, p_reason text,
    p_now bigint DEFAULT NULL, OUT o_id bigint, OUT o_created_at bigint, OUT o_expires_at bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF p_life < 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a token lives for a microsecond at least';
    END IF;
    o_created_at := ration.clock_v1(p_now);
    o_expires_at := o_created_at + p_life;
    IF (SELECT count(*) FROM ration.token AS t
        WHERE t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > o_created_at)) >= 10000 THEN
        RAISE EXCEPTION USING ERRCODE = '54000', MESSAGE = 'there are 10000 tokens already: revoke those that nobody uses';
    END IF;
    INSERT INTO ration.token (name, role, scope, secret, created_at, created_by, expires_at)
    VALUES (p_name, p_role, p_scope, p_secret, o_created_at, p_actor, o_expires_at)
    RETURNING id INTO o_id;
    INSERT INTO ration.audit (at, actor, action, after, reason, request_id)
    VALUES (o_created_at, p_actor, 'token.created',
            json_build_object('id', o_id, 'name', p_name, 'role', p_role, 'scope', p_scope, 'expiresAtMicros', o_expires_at), p_reason, '');
    PERFORM pg_notify('ration_token', '');
END $$;
