-- settle_windows_v1: the windows of a settlement: what was charged is counted as what it came to cost, in the charge's own
-- window, as long as that one counts: as the window of now, or in a sliding one as the window before it.
--
-- Arguments: p_parts as settling_v1; the actual cost; the instant of the settlement.
-- Answers: the numbers of the parts that were applied, and of those whose extra charge was cut.
-- Units: tokens, microseconds. Clock: none, the instant is given.
-- Locks: the caller has locked the rows, and pins the plans. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.settle_windows_v1(
    p_shard int, p_parts ration.operation_part[], p_actual bigint, p_now bigint, OUT o_applied int[], OUT o_clamped int[])
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    WITH outcome AS (
        SELECT s.part, s.place, p_shard AS shard, s.key, s.version, c.change < p_actual - s.cost AS clamped, w.start,
               CASE WHEN own.latest THEN greatest(0, w.current + c.change) ELSE w.current END AS current,
               CASE WHEN own.latest THEN w.previous ELSE greatest(0, w.previous + c.change) END AS previous
        FROM ration.settling_v1(p_parts) AS s
        CROSS JOIN LATERAL (
            SELECT f.start, f.current, f.previous FROM ration.window_fast AS f
            WHERE s.place = 3 AND f.shard = p_shard AND f.key = s.key
            UNION ALL SELECT f.start, f.current, f.previous FROM ration.window_durable AS f
            WHERE s.place = 4 AND f.shard = p_shard AND f.key = s.key OFFSET 0) AS held
        CROSS JOIN LATERAL ration.window_at_v1(held.start, held.current, held.previous, s.span, p_now) AS w
        CROSS JOIN LATERAL (SELECT w.start = s.mark AS latest, CASE WHEN w.start = s.mark THEN w.current ELSE w.previous END AS count
                            WHERE w.start = s.mark OR (s.sliding AND w.start = s.mark + s.span)) AS own
        CROSS JOIN LATERAL (SELECT ration.corrected_v1(s.cost, p_actual, own.count, s.capacity) AS change) AS c
    ), fast AS (
        UPDATE ration.window_fast AS w
        SET start = o.start, current = o.current, previous = o.previous, version = o.version
        FROM outcome AS o WHERE o.place = 3 AND w.shard = ANY (ARRAY[o.shard]) AND w.key = o.key
    ), durable AS (
        UPDATE ration.window_durable AS w
        SET start = o.start, current = o.current, previous = o.previous, version = o.version
        FROM outcome AS o WHERE o.place = 4 AND w.shard = ANY (ARRAY[o.shard]) AND w.key = o.key
    )
    SELECT array_agg(o.part), array_agg(o.part) FILTER (WHERE o.clamped) INTO o_applied, o_clamped FROM outcome AS o;
END $$;
