-- settle_logs_v1: the logs of a settlement: the entry of the charge is raised or lowered to what it came to cost, as long as
-- it counts.
--
-- Arguments: p_parts as settling_v1; the actual cost; the instant of the settlement.
-- Answers: the numbers of the parts that were applied, and of those whose extra charge was cut.
-- Units: tokens, microseconds. Clock: none, the instant is given.
-- Locks: the caller has locked the rows, and pins the plans. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.settle_logs_v1(
    p_shard int, p_parts ration.operation_part[], p_actual bigint, p_now bigint, OUT o_applied int[], OUT o_clamped int[])
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    WITH outcome AS (
        SELECT s.part, s.place, p_shard AS shard, s.key, s.version, c.o_entries AS entries, c.o_clamped AS clamped
        FROM ration.settling_v1(p_parts) AS s
        CROSS JOIN LATERAL (
            SELECT f.entries FROM ration.log_fast AS f
            WHERE s.place = 5 AND f.shard = p_shard AND f.key = s.key
            UNION ALL SELECT f.entries FROM ration.log_durable AS f
            WHERE s.place = 6 AND f.shard = p_shard AND f.key = s.key OFFSET 0) AS l
        CROSS JOIN LATERAL ration.log_live_v1(l.entries, p_now - s.span) AS live
        CROSS JOIN LATERAL ration.log_corrected_v1(live.o_live, s.mark, s.cost, p_actual, s.capacity) AS c
        WHERE c.o_entries IS NOT NULL
    ), fast AS (
        UPDATE ration.log_fast AS l SET entries = o.entries, version = o.version
        FROM outcome AS o WHERE o.place = 5 AND l.shard = ANY (ARRAY[o.shard]) AND l.key = o.key
    ), durable AS (
        UPDATE ration.log_durable AS l SET entries = o.entries, version = o.version
        FROM outcome AS o WHERE o.place = 6 AND l.shard = ANY (ARRAY[o.shard]) AND l.key = o.key
    )
    SELECT array_agg(o.part), array_agg(o.part) FILTER (WHERE o.clamped) INTO o_applied, o_clamped FROM outcome AS o;
END $$;
