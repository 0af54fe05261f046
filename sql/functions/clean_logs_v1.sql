-- clean_logs_v1: deletes logs of which no entry counts any more, where an idle key is as free: then no answer changes. What was
-- written before the policy's state began anew counts no more at all.
--
-- Arguments: as clean_v1. Answers: how many rows were deleted and the last key examined, NULL when the end was reached.
-- Units: rows. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the rows it deletes, ascending by key, by SKIP LOCKED, as clean_v1 does.
-- SQLSTATE: RN003 from clock_v1; RN001 RN004 from stretch_v1.
CREATE OR REPLACE FUNCTION ration.clean_logs_v1(
    p_durable boolean, p_shard int, p_after uuid, p_rows int, p_now bigint DEFAULT NULL, OUT o_deleted int, OUT o_last uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_table constant text   := CASE p_durable WHEN true THEN 'log_durable' WHEN false THEN 'log_fast' END;
    v_now   constant bigint := ration.clock_v1(p_now);
    s                record := ration.stretch_v1(v_table, 'key', p_shard, p_after, p_rows);
BEGIN
    o_last := s.o_last;
    -- Planned anew each time: once in a while, and over either table. The newest entry is the last pair.
    EXECUTE format('DELETE FROM ration.%1$I AS d
                    USING (SELECT l.key FROM ration.%1$I AS l JOIN ration.policy AS p ON p.number = l.policy
                           CROSS JOIN LATERAL (SELECT ration.idle_log_v1(p) AS entries) AS idle
                           WHERE l.shard = $1 AND l.key > $2 AND l.key <= $3
                             AND l.version <= p.version  -- not by what the policy was before
                             AND NOT EXISTS (SELECT FROM ration.sweep AS o WHERE o.policy = l.policy AND o.version > l.version)
                             AND (l.version < p.since
                                  OR coalesce(l.entries[cardinality(l.entries) - 1] <= $4 - p.span, true)
                                     AND coalesce(idle.entries[cardinality(idle.entries) - 1] <= $4 - p.span, true))
                           ORDER BY l.key FOR NO KEY UPDATE OF l SKIP LOCKED) AS idle
                    WHERE d.shard = $1 AND d.key = idle.key', v_table)
        USING p_shard, s.o_after, s.o_until, v_now;
    GET DIAGNOSTICS o_deleted = ROW_COUNT;
END $$;
