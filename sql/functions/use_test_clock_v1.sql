-- use_test_clock_v1: marks the database as one whose calls may name their own instant (p_now). For tests only: the
-- owner alone may call it, and there is no way back.
--
-- Units: none. Clock: from here on the caller's, where one is given.
-- Locks: the row of ration.policy_set. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.use_test_clock_v1()
RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    UPDATE ration.policy_set SET test_clock = true;
END;
