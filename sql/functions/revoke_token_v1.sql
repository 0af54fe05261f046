-- revoke_token_v1: a token lets nobody in any more, in one transaction with its audit row.
--
-- Arguments: the token's number; the reason goes into the audit with the name of the session's user.
-- Answers: revoked | unchanged (it was revoked before) | unknown (there is no such token).
-- Units: none. Clock: clock_timestamp(), or p_now on a test clock.
-- Locks: the token's row, then the audit's.
-- SQLSTATE: RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.revoke_token_v1(p_id bigint, p_reason text, p_now bigint DEFAULT NULL)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_now   constant bigint := ration.clock_v1(p_now);
    v_token ration.token;
BEGIN
    SELECT t.* INTO v_token FROM ration.token AS t WHERE t.id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'unknown';
    ELSIF v_token.revoked_at IS NOT NULL THEN
        RETURN 'unchanged';
    END IF;
    UPDATE ration.token AS t SET revoked_at = v_now WHERE t.id = p_id;
    INSERT INTO ration.audit (at, actor, action, before, reason, request_id)
    VALUES (v_now, session_user, 'token.revoked',
            json_build_object('id', p_id, 'name', v_token.name, 'role', v_token.role, 'scope', v_token.scope), p_reason, '');
    PERFORM pg_notify('ration_token', '');
    RETURN 'revoked';
END $$;
