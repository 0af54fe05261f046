-- settle_buckets_v1: the token buckets of a settlement: each is brought to now under the version in force and given back
-- what was charged, less what it came to cost; it never holds more than its capacity, nor owes more.
--
-- Arguments: p_parts as settling_v1; the actual cost; the instant of the settlement.
-- Answers: the numbers of the parts that were applied, all of them, and of those whose extra charge was cut.
-- Units: tokens, microseconds. Clock: none, the instant is given.
-- Locks: the caller has locked the rows, and pins the plans. SQLSTATE: none: what may exceed 64 bits is numeric.
CREATE OR REPLACE FUNCTION ration.settle_buckets_v1(
    p_shard int, p_parts ration.operation_part[], p_actual bigint, p_now bigint, OUT o_applied int[], OUT o_clamped int[])
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_policies int[];     -- of the rows of older versions,
    v_before   int[];     -- the version before and
    v_versions int[];     -- the version now,
    v_cut      boolean[]; -- and whether a change cut the balance
BEGIN
    WITH owed AS (
        SELECT s.part, s.place, s.key, s.policy, s.version, s.capacity_units, greatest(held.at, p_now) AS at,
               b.version AS before, carried.o_clamped AS cut,
               ration.settled_v1(held.balance, held.at, p_now, s.n, s.capacity_units) + (s.cost - p_actual)::numeric * s.d AS balance
        FROM ration.settling_v1(p_parts) AS s
        CROSS JOIN LATERAL (
            SELECT f.version, f.balance, f.at FROM ration.bucket_fast AS f
            WHERE s.place = 1 AND f.shard = p_shard AND f.key = s.key
            UNION ALL SELECT f.version, f.balance, f.at FROM ration.bucket_durable AS f
            WHERE s.place = 2 AND f.shard = p_shard AND f.key = s.key OFFSET 0) AS b
        LEFT JOIN LATERAL (SELECT c.o_balance, c.o_at, c.o_clamped FROM ration.carry_v1(s.policy, b.version, s.version, b.balance, b.at) AS c
                           WHERE b.version < s.version OFFSET 0) AS carried ON true  -- not called for rows in force
        CROSS JOIN LATERAL (SELECT coalesce(carried.o_balance, b.balance) AS balance, coalesce(carried.o_at, b.at) AS at) AS held
    ), outcome AS (
        SELECT o.part, o.place, p_shard AS shard, o.key, o.policy, o.before, o.version, o.cut, o.at,
               o.balance < -o.capacity_units AS clamped,
               ration.clamped_v1(o.balance, o.capacity_units) AS balance
        FROM owed AS o
    ), fast AS (
        UPDATE ration.bucket_fast AS b SET balance = o.balance, at = o.at, version = o.version
        FROM outcome AS o WHERE o.place = 1 AND b.shard = ANY (ARRAY[o.shard]) AND b.key = o.key
    ), durable AS (
        UPDATE ration.bucket_durable AS b SET balance = o.balance, at = o.at, version = o.version
        FROM outcome AS o WHERE o.place = 2 AND b.shard = ANY (ARRAY[o.shard]) AND b.key = o.key
    )
    SELECT array_agg(o.part), array_agg(o.part) FILTER (WHERE o.clamped),
           array_agg(o.policy) FILTER (WHERE o.before < o.version), array_agg(o.before) FILTER (WHERE o.before < o.version),
           array_agg(o.version) FILTER (WHERE o.before < o.version), array_agg(o.cut) FILTER (WHERE o.before < o.version)
    INTO o_applied, o_clamped, v_policies, v_before, v_versions, v_cut
    FROM outcome AS o;
    IF v_policies IS NOT NULL THEN
        PERFORM ration.append_carried_v1(v_policies, v_before, v_versions, v_cut);
    END IF;
END $$;
