-- clock_v1: the instant of a call: the database's clock, or the instant a test gives.
--
-- Units: microseconds since 1970 (UTC).
-- Clock: clock_timestamp(), read when called, not when the transaction began.
-- Locks: none.
-- SQLSTATE: RN003 p_now is given and the database is not marked as a test clock (use_test_clock_v1).
CREATE OR REPLACE FUNCTION ration.clock_v1(p_now bigint DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF p_now IS NULL THEN
        RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    END IF;
    IF NOT (SELECT s.test_clock FROM ration.policy_set AS s) THEN
        RAISE EXCEPTION USING ERRCODE = 'RN003', MESSAGE = 'p_now is given, but this database is not marked as a test clock';
    END IF;
    RETURN p_now;
END $$;
