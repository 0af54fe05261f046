-- clean_shadow_v1: deletes the report on one policy version that has decided nothing as a shadow for 7 days, and with it the
-- names of those whom it would have denied.
--
-- Answers: how many it deleted, 1 or 0: call it again until there is none.
-- Units: none. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the version's sum, by SKIP LOCKED, then its keys, at most 1,000.
-- SQLSTATE: RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.clean_shadow_v1(p_now bigint DEFAULT NULL)
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_before constant bigint := ration.clock_v1(p_now) - 7 * 86400000000;
    v_old             ration.shadow_total;
BEGIN
    SELECT t.* INTO v_old FROM ration.shadow_total AS t WHERE t.last_at < v_before LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    DELETE FROM ration.shadow_denial AS d WHERE d.policy = v_old.policy AND d.version = v_old.version;
    DELETE FROM ration.shadow_total AS t WHERE t.policy = v_old.policy AND t.version = v_old.version;
    RETURN 1;
END $$;
