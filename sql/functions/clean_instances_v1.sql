-- clean_instances_v1: takes instances off the list that have not been seen for 10 minutes.
--
-- Answers: how many were deleted.
-- Units: rows. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the rows it deletes, by SKIP LOCKED.
-- SQLSTATE: RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.clean_instances_v1(p_now bigint DEFAULT NULL)
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_now constant bigint := ration.clock_v1(p_now);
    v_deleted      int;
BEGIN
    DELETE FROM ration.instance AS d
    USING (SELECT i.id FROM ration.instance AS i WHERE abs(v_now - i.seen_at) > 600000000 FOR UPDATE SKIP LOCKED) AS lost
    WHERE d.id = lost.id;
    GET DIAGNOSTICS v_deleted = ROW_COUNT;
    RETURN v_deleted;
END $$;
