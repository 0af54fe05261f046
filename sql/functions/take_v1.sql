-- take_v1: the fast path: refills, compares and consumes one token bucket for each element, in one ascending pass.
-- For single policies without operation id whose rows are present and of the version in force; whatever else it meets
-- is answered `again` and belongs to take_new_v1.
--
-- Arguments: element i asks p_costs[i] tokens from the bucket p_keys[i] of policy number p_policies[i] for each of
--        p_counts[i] callers; 0 callers peek: answered, not charged. Keys are distinct. p_generation is the policy
--        set under which the caller matched.
-- Answers: o_stale, true when that is not the policy set in force: then nothing was decided and the arrays are NULL.
--        Else one entry for each decided element, in no order that matters: o_element its index; o_admitted how many
--        of its callers were admitted; o_remaining whole tokens left; o_retry_after until one more caller of this cost
--        would be admitted, 0 at once, -1 never; o_reset_after until the bucket is full. An element that is missing
--        from the arrays is `again`: absent, of another version, or changed by another call meanwhile; not charged.
-- Units: costs and remaining in tokens, waits in microseconds from o_now.
-- Clock: clock_timestamp() once, after the guard; p_now instead, where the database is marked as a test clock.
-- Locks: the rows of admitted elements, ascending by key; a denied or peeked element locks and writes nothing.
-- SQLSTATE: RN001 RN002 RN004 from guard_v1, RN003 from clock_v1; 57014 statement_timeout, with nothing charged.
CREATE OR REPLACE FUNCTION ration.take_v1(
    p_shard int, p_generation bigint, p_policies int[], p_keys uuid[], p_costs bigint[], p_counts int[],
    p_now bigint DEFAULT NULL,
    OUT o_stale boolean, OUT o_now bigint, OUT o_element int[], OUT o_admitted int[],
    OUT o_remaining bigint[], OUT o_retry_after bigint[], OUT o_reset_after bigint[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Pinned plans: rows are locked in the order of the sorted elements only if these drive a nested loop, and a small batch
-- must not be planned anew for each call.
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $$
DECLARE
    r record;
BEGIN
    o_stale := NOT ration.guard_v1(true, p_generation, p_policies, p_keys, p_costs, p_counts);
    IF o_stale THEN
        RETURN;
    END IF;
    o_now := ration.clock_v1(p_now);
    -- durable: PERFORM ration.commit_durably_v1();

    -- The sorted elements are the outer side, so rows are locked ascending, whatever the planner believes of the tables: a
    -- subquery with an ORDER BY or an OFFSET is not flattened, what is LATERAL to it cannot come before it, and a row of the
    -- bucket table can only be found through an element: = ANY of an array gives no order to merge by, so walking the whole
    -- index, which would come first while a table is small, is no candidate.
    -- b.version = q.version: after a wait for a lock PostgreSQL checks the new row against the policy row it read before.
    -- p.generation: a policy changed since the guard's look is not this call's any more.
    WITH taken AS (
        UPDATE ration.bucket_fast AS b
        SET balance = ration.settled_v1(b.balance, b.at, o_now, q.n, q.capacity_units)
                      - q.need * CASE WHEN q.count = 1 THEN 1 ELSE
                            least(q.count, ration.settled_v1(b.balance, b.at, o_now, q.n, q.capacity_units) / q.need) END,
            at = greatest(b.at, o_now),
            took = CASE WHEN q.count = 1 THEN 1 ELSE
                       least(q.count, ration.settled_v1(b.balance, b.at, o_now, q.n, q.capacity_units) / q.need) END
        FROM (SELECT k.element, k.key, p_shard AS shard, p_counts[k.element] AS count, p.version, p.n, p.d, p.capacity_units,
                     CASE WHEN p_costs[k.element] <= p.capacity THEN p_costs[k.element] * p.d END AS need
              FROM (SELECT i AS element, p_keys[i] AS key
                    FROM generate_series(1, cardinality(p_keys)) AS i WHERE p_counts[i] > 0 ORDER BY 2) AS k
              CROSS JOIN LATERAL (SELECT f.version, f.n, f.d, f.capacity, f.capacity_units FROM ration.policy AS f
                                  WHERE f.number = p_policies[k.element] AND f.generation <= p_generation OFFSET 0) AS p
              OFFSET 0) AS q
        WHERE b.shard = ANY (ARRAY[q.shard]) AND b.key = q.key AND b.version = q.version
          AND ration.settled_v1(b.balance, b.at, o_now, q.n, q.capacity_units) >= q.need
        RETURNING q.element, b.took, b.balance / q.d AS remaining,
                  ration.wait_v1(q.need - b.balance, q.n, b.at - o_now) AS retry_after,
                  ration.wait_v1(q.capacity_units - b.balance, q.n, b.at - o_now) AS reset_after)
    SELECT array_agg(t.element), array_agg(t.took), array_agg(t.remaining), array_agg(t.retry_after), array_agg(t.reset_after)
    INTO o_element, o_admitted, o_remaining, o_retry_after, o_reset_after
    FROM taken AS t;
    IF cardinality(o_element) = cardinality(p_keys) THEN
        RETURN;
    END IF;

    -- What was not written is read and answered: denied, never, or peeked. A leftover that would be admitted now is `again`.
    SELECT array_agg(s.element) AS element, array_agg(s.admitted) AS admitted, array_agg(s.remaining) AS remaining,
           array_agg(s.retry_after) AS retry_after, array_agg(s.reset_after) AS reset_after
    INTO r
    FROM (SELECT e.element, 0 AS admitted, greatest(0, b.settled / p.d) AS remaining,
                 CASE WHEN need.units IS NULL THEN -1
                      ELSE ration.wait_v1(need.units - b.settled, p.n, b.at - o_now) END AS retry_after,
                 ration.wait_v1(p.capacity_units - b.settled, p.n, b.at - o_now) AS reset_after
          FROM (SELECT i FROM generate_series(1, cardinality(p_keys)) AS i EXCEPT SELECT unnest(o_element)) AS e (element)
          CROSS JOIN LATERAL (SELECT f.version, f.n, f.d, f.capacity, f.capacity_units FROM ration.policy AS f
                              WHERE f.number = p_policies[e.element] AND f.generation <= p_generation OFFSET 0) AS p
          CROSS JOIN LATERAL (SELECT f.at, ration.settled_v1(f.balance, f.at, o_now, p.n, p.capacity_units) AS settled
                              FROM ration.bucket_fast AS f
                              WHERE f.shard = p_shard AND f.key = p_keys[e.element] AND f.version = p.version OFFSET 0) AS b
          CROSS JOIN LATERAL (SELECT CASE WHEN p_costs[e.element] <= p.capacity THEN p_costs[e.element] * p.d END AS units) AS need
          WHERE p_counts[e.element] = 0 OR need.units IS NULL OR b.settled < need.units) AS s;
    o_element := o_element || r.element;
    o_admitted := o_admitted || r.admitted;
    o_remaining := o_remaining || r.remaining;
    o_retry_after := o_retry_after || r.retry_after;
    o_reset_after := o_reset_after || r.reset_after;
END $$;
