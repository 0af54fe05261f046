-- release_slot_v1: gives a slot back before it expires, whatever has become of its policy.
--
-- Answers: whether it was live until now; false when there is no such slot, or it has expired.
-- Units: none. Clock: clock_timestamp() once, under the lock; p_now instead, where the database is marked as a test clock.
-- Locks: the slot's row, waited for 5 ms at most.
-- SQLSTATE: RN001 from ready_v1, RN003 from clock_v1; with nothing released, to be called again: 55P03 the row was held, 57014
--           statement_timeout.
CREATE OR REPLACE FUNCTION ration.release_slot_v1(p_shard int, p_slot uuid, p_now bigint DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5ms'  -- why so short: see settle_v1
AS $$
DECLARE
    v_now bigint;
BEGIN
    PERFORM ration.ready_v1(false, NULL);
    PERFORM ration.commit_durably_v1();
    PERFORM FROM ration.slot AS s WHERE s.shard = p_shard AND s.id = p_slot FOR UPDATE;
    v_now := ration.clock_v1(p_now);
    DELETE FROM ration.slot AS s WHERE s.shard = p_shard AND s.id = p_slot AND s.expires_at > v_now;
    RETURN FOUND;
END $$;
