-- clean_windows_v1: deletes windows that no later instant counts: then no answer changes. A window counts until it has
-- passed, and in a sliding one until the window behind it has passed too. An idle key is as free by then: no row begins
-- before the window that an idle key has. What was written before the policy's state began anew counts no more at all.
--
-- Arguments: as clean_v1. Answers: how many rows were deleted and the last key examined, NULL when the end was reached.
-- Units: rows. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the rows it deletes, ascending by key, by SKIP LOCKED, as clean_v1 does.
-- SQLSTATE: RN003 from clock_v1; RN001 RN004 from stretch_v1.
CREATE OR REPLACE FUNCTION ration.clean_windows_v1(
    p_durable boolean, p_shard int, p_after uuid, p_rows int, p_now bigint DEFAULT NULL, OUT o_deleted int, OUT o_last uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_table constant text   := CASE p_durable WHEN true THEN 'window_durable' WHEN false THEN 'window_fast' END;
    v_now   constant bigint := ration.clock_v1(p_now);
    s                record := ration.stretch_v1(v_table, 'key', p_shard, p_after, p_rows);
BEGIN
    o_last := s.o_last;
    -- Planned anew each time: once in a while, and over either table.
    EXECUTE format('DELETE FROM ration.%1$I AS d
                    USING (SELECT w.key FROM ration.%1$I AS w JOIN ration.policy AS p ON p.number = w.policy
                           WHERE w.shard = $1 AND w.key > $2 AND w.key <= $3
                             AND w.version <= p.version  -- not by what the policy was before
                             AND NOT EXISTS (SELECT FROM ration.sweep AS o WHERE o.policy = w.policy AND o.version > w.version)
                             AND (w.version < p.since
                                  OR w.start + p.span * CASE p.algorithm WHEN ''fixed_window'' THEN 1 ELSE 2 END <= $4)
                           ORDER BY w.key FOR NO KEY UPDATE OF w SKIP LOCKED) AS idle
                    WHERE d.shard = $1 AND d.key = idle.key', v_table)
        USING p_shard, s.o_after, s.o_until, v_now;
    GET DIAGNOSTICS o_deleted = ROW_COUNT;
END $$;
