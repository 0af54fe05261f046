-- clean_operations_v1: deletes outcomes of operation ids that have been kept long enough, the oldest first.
--
-- Arguments: the shard, rows to delete at most. Answers: how many were deleted.
-- Units: rows. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the rows it deletes, by SKIP LOCKED: one that is being settled stays.
-- SQLSTATE: RN001 from ready_v1, RN003 from clock_v1; RN004 p_rows outside 1 to 10,000.
CREATE OR REPLACE FUNCTION ration.clean_operations_v1(p_shard int, p_rows int, p_now bigint DEFAULT NULL)
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_now constant bigint := ration.clock_v1(p_now);
    v_deleted      int;
BEGIN
    PERFORM ration.ready_v1(false, NULL);
    IF (p_rows BETWEEN 1 AND 10000) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a call deletes 1 to 10000 rows';
    END IF;
    DELETE FROM ration.operation AS d
    USING (SELECT o.key FROM ration.operation AS o
           WHERE o.shard = p_shard AND o.expires_at <= v_now
           ORDER BY o.expires_at LIMIT p_rows FOR UPDATE SKIP LOCKED) AS expired
    WHERE d.shard = p_shard AND d.key = expired.key;
    GET DIAGNOSTICS v_deleted = ROW_COUNT;
    RETURN v_deleted;
END $$;
