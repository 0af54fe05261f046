-- Code generated from take_new_v1.sql by internal/gen/durable. DO NOT EDIT.
--
-- take_new_durable_v1: the settling path: decides what take_durable_v1 answered `again`: rows that are absent, of an older version, or
-- contended. Absent keys are inserted first, charged already: an absent bucket is an idle bucket, and whoever inserts its
-- row decides. Then all other rows are locked ascending, read anew and decided.
--
-- Arguments: as take_durable_v1, and p_hold, what to do about rows that other sessions hold:
--        'wait'   waits for them, until statement_timeout;
--        'skip'   leaves them out and inserts nothing (an uncommitted insert of another session cannot be skipped);
--        'alone'  one element only: waits, but only if no other call waits so for this key.
-- Answers: as take_durable_v1; under 'skip', o_admitted is -1 where another session holds the row. An element that is missing
--        from the arrays was not decided: absent ('skip'), another call waits for its key ('alone'), or deleted by the
--        cleaner meanwhile (ask again). Neither was charged.
-- Units: costs and remaining in tokens, waits in microseconds from o_now.
-- Clock: clock_timestamp() before the INSERT, which decides new keys, and after the locks, which is o_now and decides the
--        rest; p_now instead of both, where the database is marked as a test clock.
-- Locks: 'alone': the transaction's advisory lock on the key's first 64 bits; then bucket rows, ascending by key. A
--        peek locks nothing.
-- SQLSTATE: RN001 RN002 RN004 from guard_v1, RN003 from clock_v1; RN004 p_hold is another, 'alone' with several elements, or
--        a key occurs twice; 57014 statement_timeout, with nothing charged.
CREATE OR REPLACE FUNCTION ration.take_new_durable_v1(
    p_shard int, p_generation bigint, p_policies int[], p_keys uuid[], p_costs bigint[], p_counts int[],
    p_hold text DEFAULT 'wait', p_now bigint DEFAULT NULL,
    OUT o_stale boolean, OUT o_now bigint, OUT o_element int[], OUT o_admitted int[],
    OUT o_remaining bigint[], OUT o_retry_after bigint[], OUT o_reset_after bigint[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Pinned plans, and why shard is looked for as an array and behind OFFSET 0: see take_durable_v1.
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $$
DECLARE
    v_locked      int[];  -- elements whose rows this call has locked: only these may be charged
    v_xmin        xid;    -- with v_cmin: the INSERT of this call, by which its rows are told from those of earlier calls of the
    v_cmin        cid;    -- same transaction
    v_inserted_at bigint; -- the instant at which it decided
    v_policies    int[];     -- of the rows of older versions that were charged,
    v_before      int[];     -- the version before and
    v_versions    int[];     -- the version now,
    v_clamped     boolean[]; -- and whether a change cut the balance
BEGIN
    o_stale := NOT ration.guard_v1(false, p_generation, p_policies, p_keys, p_costs, p_counts);
    IF o_stale THEN
        RETURN;
    END IF;
    IF p_hold = 'alone' THEN
        IF cardinality(p_keys) <> 1 THEN
            RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a call that waits alone takes one element';
        END IF;
        IF NOT pg_try_advisory_xact_lock(ration.advisory_key_v1(p_keys[1])) THEN
            o_now := ration.clock_v1(p_now);
            RETURN;
        END IF;
    ELSIF (p_hold IN ('wait', 'skip')) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'p_hold is one of wait, skip, alone';
    END IF;
    IF (SELECT count(DISTINCT e.key) FROM unnest(p_keys) AS e (key)) <> cardinality(p_keys) THEN
        -- Both would be decided by what the row held before either.
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'the keys of a call are distinct';
    END IF;
    PERFORM ration.commit_lazily_v1();  -- what a sweep is told is logged
    PERFORM ration.commit_durably_v1();

    IF p_hold <> 'skip' THEN
        v_inserted_at := ration.clock_v1(p_now);
        -- Only keys that their idle bucket would admit: a denial writes nothing.
        WITH made AS (
            INSERT INTO ration.bucket_durable (balance, at, key, shard, policy, version, took)
            SELECT idle.settled - idle.admitted * idle.need, greatest(idle.at, v_inserted_at), e.key, p_shard, e.policy, idle.version,
                   idle.admitted
            FROM unnest(p_policies, p_keys, p_costs, p_counts) AS e (policy, key, cost, count)
            CROSS JOIN LATERAL (
                SELECT i.version, i.at, i.settled, i.need, least(e.count, i.settled / i.need) AS admitted
                FROM (SELECT p.version, p.idle_at AS at, CASE WHEN e.cost <= p.capacity THEN e.cost * p.d END AS need,
                             ration.settled_v1(p.idle_balance, p.idle_at, v_inserted_at, p.n, p.capacity_units) AS settled
                      FROM ration.policy AS p WHERE p.number = e.policy AND p.generation <= p_generation OFFSET 0) AS i
                OFFSET 0) AS idle
            WHERE e.count > 0 AND idle.settled >= idle.need
            ORDER BY e.key
            ON CONFLICT DO NOTHING
            RETURNING xmin, cmin)
        SELECT m.xmin, m.cmin INTO v_xmin, v_cmin FROM made AS m LIMIT 1;
        -- A subquery with a lock of its own cannot be flattened: the sorted elements drive it, so rows are locked ascending.
        SELECT array_agg(q.element::int) INTO v_locked
        FROM (SELECT e.element, e.key FROM unnest(p_keys) WITH ORDINALITY AS e (key, element)
              WHERE p_counts[e.element] > 0 ORDER BY e.key) AS q
        CROSS JOIN LATERAL (SELECT FROM ration.bucket_durable AS b
                            WHERE b.shard = p_shard AND b.key = q.key AND (b.xmin = v_xmin AND b.cmin = v_cmin) IS NOT TRUE
                            FOR NO KEY UPDATE) AS held;
    ELSE
        SELECT array_agg(q.element::int) INTO v_locked
        FROM (SELECT e.element, e.key FROM unnest(p_keys) WITH ORDINALITY AS e (key, element)
              WHERE p_counts[e.element] > 0 ORDER BY e.key) AS q
        CROSS JOIN LATERAL (SELECT FROM ration.bucket_durable AS b WHERE b.shard = p_shard AND b.key = q.key
                            FOR NO KEY UPDATE SKIP LOCKED) AS held;
    END IF;
    o_now := ration.clock_v1(p_now);

    -- A new statement sees every row as the lock holders before us left it.
    WITH state AS (
        SELECT e.element::int, e.key, e.policy, p.version, p.d, p.n, p.capacity_units, held.at, held.settled, need.units AS need,
               known.own, known.instant, b.version AS before, carried.o_clamped AS clamped,
               CASE WHEN mine.held THEN -1
                    WHEN known.own THEN b.took
                    WHEN need.units <= held.settled THEN least(e.count, held.settled / need.units)
                    ELSE 0 END AS admitted
        FROM unnest(p_policies, p_keys, p_costs, p_counts) WITH ORDINALITY AS e (policy, key, cost, count, element)
        CROSS JOIN LATERAL (SELECT f.* FROM ration.policy AS f
                            WHERE f.number = e.policy AND f.generation <= p_generation OFFSET 0) AS p
        LEFT JOIN LATERAL (SELECT f.key, f.version, f.balance, f.at,
                                  f.took, (f.xmin = v_xmin AND f.cmin = v_cmin) IS TRUE AS own
                           FROM ration.bucket_durable AS f
                           WHERE f.shard = p_shard AND f.key = e.key OFFSET 0) AS b ON true
        LEFT JOIN LATERAL (SELECT c.o_balance, c.o_at, c.o_clamped FROM ration.carry_v1(p.number, b.version, p.version, b.balance, b.at) AS c
                           WHERE b.version < p.version OFFSET 0) AS carried ON true  -- not called for rows in force
        CROSS JOIN LATERAL (SELECT coalesce(carried.o_balance, b.balance, p.idle_balance) AS balance,
                                   coalesce(carried.o_at, b.at, p.idle_at) AS at) AS stored
        -- What this call inserted was decided at the instant of the INSERT, and its figures are those of that instant.
        CROSS JOIN LATERAL (SELECT coalesce(b.own, false) AS own, CASE WHEN b.own THEN v_inserted_at ELSE o_now END AS instant) AS known
        CROSS JOIN LATERAL (SELECT stored.at,
                                   ration.settled_v1(stored.balance, stored.at, known.instant, p.n, p.capacity_units) AS settled
                           ) AS held
        CROSS JOIN LATERAL (SELECT CASE WHEN e.cost <= p.capacity THEN e.cost * p.d END AS units) AS need
        -- Without the lock only what cannot be charged is answered: a peek, never, or a denial by the idle bucket.
        CROSS JOIN LATERAL (SELECT known.own OR e.element = ANY (v_locked) OR e.count = 0 OR need.units IS NULL
                                   OR (b.key IS NULL AND held.settled < need.units) AS answerable) AS free
        CROSS JOIN LATERAL (SELECT p_hold = 'skip' AND b.key IS NOT NULL AND free.answerable IS NOT TRUE AS held) AS mine
        WHERE free.answerable OR mine.held
    ), outcome AS (
        SELECT s.element, p_shard AS shard, s.key, s.policy, s.version, s.own, s.instant, s.admitted, greatest(s.at, s.instant) AS at,
               s.before, s.clamped, s.admitted > 0 AND s.before < s.version AS carried,
               s.settled - CASE WHEN s.own OR s.need IS NULL THEN 0 ELSE greatest(0, s.admitted) * s.need END AS balance,
               s.need, s.d, s.n, s.capacity_units
        FROM state AS s
    ), taken AS (
        UPDATE ration.bucket_durable AS b
        SET balance = o.balance, at = o.at, version = o.version, took = o.admitted
        FROM outcome AS o
        WHERE b.shard = ANY (ARRAY[o.shard]) AND b.key = o.key AND o.admitted > 0 AND NOT o.own
    )
    SELECT array_agg(o.element), array_agg(o.admitted), array_agg(greatest(0, o.balance / o.d)),
           array_agg(CASE WHEN o.need IS NULL THEN -1 ELSE ration.wait_v1(o.need - o.balance, o.n, o.at - o.instant) END),
           array_agg(ration.wait_v1(o.capacity_units - o.balance, o.n, o.at - o.instant)),
           array_agg(o.policy) FILTER (WHERE o.carried), array_agg(o.before) FILTER (WHERE o.carried),
           array_agg(o.version) FILTER (WHERE o.carried), array_agg(o.clamped) FILTER (WHERE o.carried)
    INTO o_element, o_admitted, o_remaining, o_retry_after, o_reset_after, v_policies, v_before, v_versions, v_clamped
    FROM outcome AS o;
    IF v_policies IS NOT NULL THEN
        PERFORM ration.append_carried_v1(v_policies, v_before, v_versions, v_clamped);
    END IF;
END $$;
