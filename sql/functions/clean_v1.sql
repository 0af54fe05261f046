-- clean_v1: deletes buckets that hold exactly what an idle bucket holds: then no answer changes, since an absent bucket
-- is an idle bucket. What was written before the policy's state began anew is idle whatever it holds. What a sweep
-- is still to settle is left to it: it counts them. Examines one stretch of keys a call; call it again from where it ended until
-- that is NULL.
--
-- Arguments: the shard, the durability of the table, the key to go on behind (NULL: from the first), rows to examine.
-- Answers: how many rows were deleted and the last key examined, NULL when the end was reached.
-- Units: rows. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the rows it deletes, ascending by key, by SKIP LOCKED: it never waits, and PostgreSQL checks a row again under
--        its lock when another session has changed it since the look.
-- SQLSTATE: RN003 from clock_v1; RN001 RN004 from stretch_v1.
CREATE OR REPLACE FUNCTION ration.clean_v1(
    p_durable boolean, p_shard int, p_after uuid, p_rows int, p_now bigint DEFAULT NULL, OUT o_deleted int, OUT o_last uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_table constant text   := CASE p_durable WHEN true THEN 'bucket_durable' WHEN false THEN 'bucket_fast' END;
    v_now   constant bigint := ration.clock_v1(p_now);
    s                record := ration.stretch_v1(v_table, 'key', p_shard, p_after, p_rows);
BEGIN
    o_last := s.o_last;
    -- Planned anew each time: once in a while, and over either table.
    EXECUTE format('DELETE FROM ration.%1$I AS d
                    USING (SELECT b.key FROM ration.%1$I AS b JOIN ration.policy AS p ON p.number = b.policy
                           WHERE b.shard = $1 AND b.key > $2 AND b.key <= $3
                             AND b.version <= p.version  -- not by what the policy was before
                             AND NOT EXISTS (SELECT FROM ration.sweep AS o WHERE o.policy = b.policy AND o.version > b.version)
                             AND CASE WHEN b.version < p.since THEN true
                                      ELSE b.at <= $4 AND p.idle_at <= $4
                                           AND ration.balance_at_v1(b.policy, b.version, b.balance, b.at, $4)
                                             = ration.settled_v1(p.idle_balance, p.idle_at, $4, p.n, p.capacity_units) END
                           ORDER BY b.key FOR NO KEY UPDATE OF b SKIP LOCKED) AS idle
                    WHERE d.shard = $1 AND d.key = idle.key', v_table)
        USING p_shard, s.o_after, s.o_until, v_now;
    GET DIAGNOSTICS o_deleted = ROW_COUNT;
END $$;
