-- renew_slot_v1: lets a live slot live for its time again, from now on.
--
-- Answers: when it expires now; NULL when there is no such slot, or it has expired: then somebody else may have its place.
-- Units: microseconds. Clock: clock_timestamp() once, under the lock; p_now instead, where the database is marked as a test
--        clock.
-- Locks: the key's row of ration.slot_parent, under which slots are acquired too: who acquires sees it expired, or renewed; then
--        the slot's row. Each is waited for 5 ms at most.
-- SQLSTATE: RN001 from ready_v1, RN003 from clock_v1; with nothing renewed, to be called again: 55P03 a row was held, 57014
--           statement_timeout.
CREATE OR REPLACE FUNCTION ration.renew_slot_v1(p_shard int, p_slot uuid, p_now bigint DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5ms'  -- why so short: see settle_v1
AS $$
DECLARE
    v_now     bigint;
    v_expires bigint;
BEGIN
    PERFORM ration.ready_v1(false, NULL);
    PERFORM ration.commit_durably_v1();
    PERFORM FROM ration.slot_parent AS o
    WHERE o.shard = p_shard AND o.key = (SELECT s.key FROM ration.slot AS s WHERE s.shard = p_shard AND s.id = p_slot)
    FOR NO KEY UPDATE;
    v_now := ration.clock_v1(p_now);
    UPDATE ration.slot AS s SET expires_at = v_now + s.ttl
    WHERE s.shard = p_shard AND s.id = p_slot AND s.expires_at > v_now
    RETURNING s.expires_at INTO v_expires;
    RETURN v_expires;
END $$;
