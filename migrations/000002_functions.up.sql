-- The stored functions, the view and who may use them: what sql/ holds, in the order in which each finds what it needs.

-- settled_v1: what a bucket holds at an instant, under one policy version. The one home of the refill rule.
--
-- Units: balance and capacity in units of 1/d token, rate (n) in units per microsecond, instants in microseconds.
-- Clock: none; both instants are given. A clock behind p_at earns nothing.
-- Locks: none. SQLSTATE: none: no operand can overflow, since capacity and rate are below 2^62 and balance >= -capacity.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.settled_v1(p_balance bigint, p_at bigint, p_now bigint, p_rate bigint, p_capacity bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_now <= p_at THEN p_balance
            WHEN p_now - p_at > (p_capacity - p_balance) / p_rate THEN p_capacity
            ELSE p_balance + (p_now - p_at) * p_rate END;

-- wait_v1: how long it takes to earn some units, rounded up to the microsecond; 0 when there is nothing to earn.
--
-- Units: p_units in units of 1/d token, p_rate (n) in units per microsecond, p_ahead and the answer in microseconds:
--        p_ahead is how far the bucket's instant is ahead of the clock; nothing is earned before it is reached.
-- Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.wait_v1(p_units bigint, p_rate bigint, p_ahead bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_units > 0 THEN greatest(0, p_ahead) + (p_units - 1) / p_rate + 1 ELSE 0 END;

-- clock_v1: the instant of a call: the database's clock, or the instant a test gives.
--
-- Units: microseconds since 1970 (UTC).
-- Clock: clock_timestamp(), read when called, not when the transaction began.
-- Locks: none.
-- SQLSTATE: RN003 p_now is given and the database is not marked as a test clock (use_test_clock_v1).
CREATE OR REPLACE FUNCTION ration.clock_v1(p_now bigint DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF p_now IS NULL THEN
        RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    END IF;
    IF NOT (SELECT s.test_clock FROM ration.policy_set AS s) THEN
        RAISE EXCEPTION USING ERRCODE = 'RN003', MESSAGE = 'p_now is given, but this database is not marked as a test clock';
    END IF;
    RETURN p_now;
END $$;

-- use_test_clock_v1: marks the database as one whose calls may name their own instant (p_now). For tests only: the
-- owner alone may call it, and there is no way back.
--
-- Units: none. Clock: from here on the caller's, where one is given.
-- Locks: the row of ration.policy_set. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.use_test_clock_v1()
RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    UPDATE ration.policy_set SET test_clock = true;
END;

-- guard_v1: what stands before every decision: isolation level, shape of the arguments, life of the fast state,
-- generation. Answers whether the call may decide: false means that it was matched under another generation.
--
-- Units: counts of callers, costs in tokens.
-- Clock: none. Locks: none.
-- SQLSTATE: RN001 isolation level other than READ COMMITTED; RN002 the fast state was lost, call recover_v1;
--           RN004 arrays of different length or not counted from 1, none or more than 1,024 elements, a cost
--           below 1, a count below 0, NULL for any of them.
CREATE OR REPLACE FUNCTION ration.guard_v1(
    p_fast boolean, p_generation bigint, p_policies int[], p_keys uuid[], p_costs bigint[], p_counts int[])
RETURNS boolean LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_length     constant int := cardinality(p_keys);
    v_generation bigint;
    v_alive      boolean;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = 'RN001', MESSAGE = 'a decision needs isolation level READ COMMITTED';
    END IF;
    -- NULL must never stand for nothing to pay: each condition has to be true, not merely not false.
    IF (p_generation IS NOT NULL AND v_length BETWEEN 1 AND 1024 AND array_upper(p_keys, 1) = v_length
        AND array_upper(p_policies, 1) = v_length AND cardinality(p_policies) = v_length
        AND array_upper(p_costs, 1) = v_length AND cardinality(p_costs) = v_length AND 1 <= ALL (p_costs)
        AND array_upper(p_counts, 1) = v_length AND cardinality(p_counts) = v_length AND 0 <= ALL (p_counts)
        AND array_position(p_policies, NULL) IS NULL AND array_position(p_keys, NULL) IS NULL) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004',
            MESSAGE = 'a call takes 1 to 1024 elements, as many policies, keys, costs >= 1 and counts >= 0';
    END IF;
    SELECT s.generation, m.incarnation IS NOT NULL INTO v_generation, v_alive
    FROM ration.policy_set AS s LEFT JOIN ration.incarnation_marker AS m ON m.incarnation = s.incarnation;
    IF p_fast AND NOT v_alive THEN
        RAISE EXCEPTION USING ERRCODE = 'RN002', MESSAGE = 'the fast state was lost in a crash: call ration.recover_v1';
    END IF;
    RETURN v_generation = p_generation;
END $$;

-- commit_durably_v1: makes the running transaction's COMMIT wait for the WAL to be flushed, unless the session asks for
-- more. It is set for the transaction, not for the function: a SET clause is undone before COMMIT.
--
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.commit_durably_v1()
RETURNS void LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END $$;

-- carry_v1: carries a balance over policy changes, version by version: earn under the old version up to the instant of
-- the change, convert by the rule that the change stated, go on from there. The one home of that rule.
--
-- Arguments: policy number, the version the balance was settled under, the version wanted, balance, instant.
-- Answers: the balance under the wanted version and the instant it stands for, never before p_at.
--        keep: floor(balance * d_new / d_old), in numeric, between minus and plus the new capacity.
-- Units: balances in units of 1/d token of their version, instants in microseconds.
-- Clock: none; it reaches the last change, not now.
-- Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.carry_v1(
    p_policy int, p_from int, p_to int, p_balance bigint, p_at bigint, OUT o_balance bigint, OUT o_at bigint)
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    r        record;
    v_scaled numeric;
BEGIN
    o_balance := p_balance;
    o_at := p_at;
    FOR r IN
        SELECT w.n, w.d, w.capacity_units, v.d AS new_d, v.capacity_units AS new_capacity_units, v.installed_at
        FROM ration.policy_version AS v
        JOIN ration.policy_version AS w ON w.number = v.number AND w.version = v.version - 1
        WHERE v.number = p_policy AND v.version > p_from AND v.version <= p_to
        ORDER BY v.version
    LOOP
        o_balance := ration.settled_v1(o_balance, o_at, r.installed_at, r.n, r.capacity_units);
        o_at := greatest(o_at, r.installed_at);
        -- Numeric division rounds, so the remainder is taken off first: what is left divides exactly.
        v_scaled := o_balance::numeric * r.new_d;
        v_scaled := div(v_scaled - mod(mod(v_scaled, r.d) + r.d, r.d), r.d);
        o_balance := least(r.new_capacity_units, greatest(-r.new_capacity_units, v_scaled))::bigint;
    END LOOP;
END $$;

-- balance_at_v1: what a stored balance is at an instant under the version in force now: carried over every change since
-- its own version, then settled. For looks at the state; decisions do the same under their locks.
--
-- Units: the answer in units of 1/d token of the version in force, instants in microseconds.
-- Clock: none, the instant is given. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.balance_at_v1(p_policy int, p_version int, p_balance bigint, p_at bigint, p_now bigint)
RETURNS bigint LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT ration.settled_v1(c.o_balance, c.o_at, p_now, p.n, p.capacity_units)
    FROM ration.policy AS p
    CROSS JOIN LATERAL ration.carry_v1(p.number, p_version, p.version, p_balance, p_at) AS c
    WHERE p.number = p_policy;
END;

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

-- Code generated from take_v1.sql by internal/gen/durable. DO NOT EDIT.
--
-- take_durable_v1: the fast path: refills, compares and consumes one token bucket for each element, in one ascending pass.
-- For single policies without operation id whose rows are present and of the version in force; whatever else it meets
-- is answered `again` and belongs to take_new_durable_v1.
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
CREATE OR REPLACE FUNCTION ration.take_durable_v1(
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
    o_stale := NOT ration.guard_v1(false, p_generation, p_policies, p_keys, p_costs, p_counts);
    IF o_stale THEN
        RETURN;
    END IF;
    o_now := ration.clock_v1(p_now);
    PERFORM ration.commit_durably_v1();

    -- The sorted elements are the outer side, so rows are locked ascending, whatever the planner believes of the tables: a
    -- subquery with an ORDER BY or an OFFSET is not flattened, what is LATERAL to it cannot come before it, and a row of the
    -- bucket table can only be found through an element: = ANY of an array gives no order to merge by, so walking the whole
    -- index, which would come first while a table is small, is no candidate.
    -- b.version = q.version: after a wait for a lock PostgreSQL checks the new row against the policy row it read before.
    -- p.generation: a policy changed since the guard's look is not this call's any more.
    WITH taken AS (
        UPDATE ration.bucket_durable AS b
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
                              FROM ration.bucket_durable AS f
                              WHERE f.shard = p_shard AND f.key = p_keys[e.element] AND f.version = p.version OFFSET 0) AS b
          CROSS JOIN LATERAL (SELECT CASE WHEN p_costs[e.element] <= p.capacity THEN p_costs[e.element] * p.d END AS units) AS need
          WHERE p_counts[e.element] = 0 OR need.units IS NULL OR b.settled < need.units) AS s;
    o_element := o_element || r.element;
    o_admitted := o_admitted || r.admitted;
    o_remaining := o_remaining || r.remaining;
    o_retry_after := o_retry_after || r.retry_after;
    o_reset_after := o_reset_after || r.reset_after;
END $$;

-- take_new_v1: the settling path: decides what take_v1 answered `again`: rows that are absent, of an older version, or
-- contended. Absent keys are inserted first, charged already: an absent bucket is an idle bucket, and whoever inserts its
-- row decides. Then all other rows are locked ascending, read anew and decided.
--
-- Arguments: as take_v1, and p_hold, what to do about rows that other sessions hold:
--        'wait'   waits for them, until statement_timeout;
--        'skip'   leaves them out and inserts nothing (an uncommitted insert of another session cannot be skipped);
--        'alone'  one element only: waits, but only if no other call waits so for this key.
-- Answers: as take_v1; under 'skip', o_admitted is -1 where another session holds the row. An element that is missing
--        from the arrays was not decided: absent ('skip'), another call waits for its key ('alone'), or deleted by the
--        cleaner meanwhile (ask again). Neither was charged.
-- Units: costs and remaining in tokens, waits in microseconds from o_now.
-- Clock: clock_timestamp() before the INSERT, which decides new keys, and after the locks, which is o_now and decides the
--        rest; p_now instead of both, where the database is marked as a test clock.
-- Locks: 'alone': the transaction's advisory lock on the key's first 64 bits; then bucket rows, ascending by key. A
--        peek locks nothing.
-- SQLSTATE: RN001 RN002 RN004 from guard_v1, RN003 from clock_v1; RN004 p_hold is another, 'alone' with several elements, or
--        a key occurs twice; 57014 statement_timeout, with nothing charged.
CREATE OR REPLACE FUNCTION ration.take_new_v1(
    p_shard int, p_generation bigint, p_policies int[], p_keys uuid[], p_costs bigint[], p_counts int[],
    p_hold text DEFAULT 'wait', p_now bigint DEFAULT NULL,
    OUT o_stale boolean, OUT o_now bigint, OUT o_element int[], OUT o_admitted int[],
    OUT o_remaining bigint[], OUT o_retry_after bigint[], OUT o_reset_after bigint[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Pinned plans, and why shard is looked for as an array and behind OFFSET 0: see take_v1.
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
BEGIN
    o_stale := NOT ration.guard_v1(true, p_generation, p_policies, p_keys, p_costs, p_counts);
    IF o_stale THEN
        RETURN;
    END IF;
    IF p_hold = 'alone' THEN
        IF cardinality(p_keys) <> 1 THEN
            RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a call that waits alone takes one element';
        END IF;
        IF NOT pg_try_advisory_xact_lock(('x' || left(replace(p_keys[1]::text, '-', ''), 16))::bit(64)::bigint) THEN
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
    -- durable: PERFORM ration.commit_durably_v1();

    IF p_hold <> 'skip' THEN
        v_inserted_at := ration.clock_v1(p_now);
        -- Only keys that their idle bucket would admit: a denial writes nothing.
        WITH made AS (
            INSERT INTO ration.bucket_fast (balance, at, key, shard, policy, version, took)
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
        CROSS JOIN LATERAL (SELECT FROM ration.bucket_fast AS b
                            WHERE b.shard = p_shard AND b.key = q.key AND (b.xmin = v_xmin AND b.cmin = v_cmin) IS NOT TRUE
                            FOR NO KEY UPDATE) AS held;
    ELSE
        SELECT array_agg(q.element::int) INTO v_locked
        FROM (SELECT e.element, e.key FROM unnest(p_keys) WITH ORDINALITY AS e (key, element)
              WHERE p_counts[e.element] > 0 ORDER BY e.key) AS q
        CROSS JOIN LATERAL (SELECT FROM ration.bucket_fast AS b WHERE b.shard = p_shard AND b.key = q.key
                            FOR NO KEY UPDATE SKIP LOCKED) AS held;
    END IF;
    o_now := ration.clock_v1(p_now);

    -- A new statement sees every row as the lock holders before us left it.
    WITH state AS (
        SELECT e.element::int, e.key, p.version, p.d, p.n, p.capacity_units, held.at, held.settled, need.units AS need,
               known.own, known.instant,
               CASE WHEN mine.held THEN -1
                    WHEN known.own THEN b.took
                    WHEN need.units <= held.settled THEN least(e.count, held.settled / need.units)
                    ELSE 0 END AS admitted
        FROM unnest(p_policies, p_keys, p_costs, p_counts) WITH ORDINALITY AS e (policy, key, cost, count, element)
        CROSS JOIN LATERAL (SELECT f.* FROM ration.policy AS f
                            WHERE f.number = e.policy AND f.generation <= p_generation OFFSET 0) AS p
        LEFT JOIN LATERAL (SELECT f.key, f.version, f.balance, f.at,
                                  f.took, (f.xmin = v_xmin AND f.cmin = v_cmin) IS TRUE AS own
                           FROM ration.bucket_fast AS f
                           WHERE f.shard = p_shard AND f.key = e.key OFFSET 0) AS b ON true
        LEFT JOIN LATERAL (SELECT c.o_balance, c.o_at FROM ration.carry_v1(p.number, b.version, p.version, b.balance, b.at) AS c
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
        SELECT s.element, p_shard AS shard, s.key, s.version, s.own, s.instant, s.admitted, greatest(s.at, s.instant) AS at,
               s.settled - CASE WHEN s.own OR s.need IS NULL THEN 0 ELSE greatest(0, s.admitted) * s.need END AS balance,
               s.need, s.d, s.n, s.capacity_units
        FROM state AS s
    ), taken AS (
        UPDATE ration.bucket_fast AS b
        SET balance = o.balance, at = o.at, version = o.version, took = o.admitted
        FROM outcome AS o
        WHERE b.shard = ANY (ARRAY[o.shard]) AND b.key = o.key AND o.admitted > 0 AND NOT o.own
    )
    SELECT array_agg(o.element), array_agg(o.admitted), array_agg(greatest(0, o.balance / o.d)),
           array_agg(CASE WHEN o.need IS NULL THEN -1 ELSE ration.wait_v1(o.need - o.balance, o.n, o.at - o.instant) END),
           array_agg(ration.wait_v1(o.capacity_units - o.balance, o.n, o.at - o.instant))
    INTO o_element, o_admitted, o_remaining, o_retry_after, o_reset_after
    FROM outcome AS o;
END $$;

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
BEGIN
    o_stale := NOT ration.guard_v1(false, p_generation, p_policies, p_keys, p_costs, p_counts);
    IF o_stale THEN
        RETURN;
    END IF;
    IF p_hold = 'alone' THEN
        IF cardinality(p_keys) <> 1 THEN
            RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a call that waits alone takes one element';
        END IF;
        IF NOT pg_try_advisory_xact_lock(('x' || left(replace(p_keys[1]::text, '-', ''), 16))::bit(64)::bigint) THEN
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
        SELECT e.element::int, e.key, p.version, p.d, p.n, p.capacity_units, held.at, held.settled, need.units AS need,
               known.own, known.instant,
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
        LEFT JOIN LATERAL (SELECT c.o_balance, c.o_at FROM ration.carry_v1(p.number, b.version, p.version, b.balance, b.at) AS c
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
        SELECT s.element, p_shard AS shard, s.key, s.version, s.own, s.instant, s.admitted, greatest(s.at, s.instant) AS at,
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
           array_agg(ration.wait_v1(o.capacity_units - o.balance, o.n, o.at - o.instant))
    INTO o_element, o_admitted, o_remaining, o_retry_after, o_reset_after
    FROM outcome AS o;
END $$;

-- clean_v1: deletes buckets that hold exactly what an idle bucket holds: then no answer changes, since an absent bucket
-- is an idle bucket. Examines one stretch of keys a call; call it again from where it ended until that is NULL.
--
-- Arguments: the shard, the durability of the table, the key to go on behind (NULL: from the first), rows to examine.
-- Answers: how many rows were deleted and the last key examined, NULL when the end was reached.
-- Units: rows. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the rows it deletes, ascending by key, by SKIP LOCKED: it never waits, and PostgreSQL checks a row again under
--        its lock when another session has changed it since the look.
-- SQLSTATE: RN003 from clock_v1; RN004 p_rows outside 1 to 10,000.
CREATE OR REPLACE FUNCTION ration.clean_v1(
    p_durable boolean, p_shard int, p_after uuid, p_rows int, p_now bigint DEFAULT NULL, OUT o_deleted int, OUT o_last uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_table    text   := CASE WHEN p_durable THEN 'ration.bucket_durable' ELSE 'ration.bucket_fast' END;
    v_now      bigint := ration.clock_v1(p_now);
    v_after    uuid   := coalesce(p_after, '00000000-0000-0000-0000-000000000000');
    v_examined int;
BEGIN
    IF p_rows IS NULL OR p_rows NOT BETWEEN 1 AND 10000 THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a call examines 1 to 10000 rows';
    END IF;
    -- Planned anew each time: once in a while, and over either table.
    EXECUTE format('SELECT count(*), (array_agg(s.key ORDER BY s.key DESC))[1]
                    FROM (SELECT b.key FROM %s AS b WHERE b.shard = $1 AND b.key > $2 ORDER BY b.key LIMIT $3) AS s', v_table)
        INTO v_examined, o_last USING p_shard, v_after, p_rows;
    EXECUTE format('DELETE FROM %1$s AS d
                    USING (SELECT b.key FROM %1$s AS b JOIN ration.policy AS p ON p.number = b.policy
                           WHERE b.shard = $1 AND b.key > $2 AND b.key <= $3 AND b.at <= $4 AND p.idle_at <= $4
                             AND ration.balance_at_v1(b.policy, b.version, b.balance, b.at, $4)
                               = ration.settled_v1(p.idle_balance, p.idle_at, $4, p.n, p.capacity_units)
                           ORDER BY b.key FOR NO KEY UPDATE OF b SKIP LOCKED) AS idle
                    WHERE d.shard = $1 AND d.key = idle.key', v_table)
        USING p_shard, v_after, o_last, v_now;
    GET DIAGNOSTICS o_deleted = ROW_COUNT;
    IF v_examined < p_rows THEN
        o_last := NULL;
    END IF;
END $$;

-- recover_v1: after a crash emptied the unlogged tables, records the loss, sets what the buckets of fast policies start
-- from, and begins a new incarnation. Until it has committed, every call on fast state ends in RN002.
--
-- Answers: whether a loss was found; false when another session has recovered already or nothing was lost.
--        Idle buckets under afterLoss "idle" stay as they are; under "empty" they hold nothing at the instant of the loss.
-- Units: none. Clock: clock_timestamp(), or p_now on a test clock.
-- Locks: the row of ration.policy_set, exclusively: one session recovers, policy changes wait.
-- SQLSTATE: RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.recover_v1(p_now bigint DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_lost  uuid;
    v_new   uuid := gen_random_uuid();
    v_now   bigint;
    v_empty int;
    v_fast  int;
BEGIN
    SELECT s.incarnation INTO v_lost FROM ration.policy_set AS s FOR UPDATE;
    IF EXISTS (SELECT FROM ration.incarnation_marker AS m WHERE m.incarnation = v_lost) THEN
        RETURN false;
    END IF;
    v_now := ration.clock_v1(p_now);
    SELECT count(*) INTO v_fast FROM ration.policy AS p WHERE p.durability = 'fast';
    WITH empty AS (
        UPDATE ration.policy_version AS v SET idle_balance = 0, idle_at = greatest(v_now, v.idle_at)
        FROM ration.policy AS p
        WHERE v.number = p.number AND v.version = p.version AND p.durability = 'fast' AND v.content ->> 'afterLoss' = 'empty'
        RETURNING v.number, v.idle_at
    )
    UPDATE ration.policy AS p SET idle_balance = 0, idle_at = e.idle_at FROM empty AS e WHERE p.number = e.number;
    GET DIAGNOSTICS v_empty = ROW_COUNT;

    -- A marker of another incarnation is possible where the tables were copied: rows beside it belong to no life of ours.
    DELETE FROM ration.incarnation_marker;
    DELETE FROM ration.bucket_fast;
    INSERT INTO ration.incarnation_marker (incarnation) VALUES (v_new);
    UPDATE ration.policy_set SET incarnation = v_new;
    INSERT INTO ration.state_loss (found_at, lost_incarnation, new_incarnation, policies_idle, policies_empty)
    VALUES (v_now, v_lost, v_new, v_fast - v_empty, v_empty);
    RETURN true;
END $$;

-- put_policy_v1: installs a version of a policy, in one transaction with its audit row and the bump of the generation.
--
-- Arguments: p_expected is the version in force, 0 when the policy must not exist yet. p_content is the stored form; n,
--        d and capacity are its limit in stored units, and are refused where they disagree with it. p_balances is the
--        rule by which live balances are carried over: keep.
-- Answers: o_outcome created | changed | unchanged (the same content: no new version) | conflict (o_version is the one
--        in force, 0 when there is none; nothing was changed) | restart (the members o_restarts say which state the policy
--        keeps, so that its balances could not be carried over; nothing was changed); number, version, instant and
--        generation of what is in force now.
-- Units: n in units per microsecond, d in units per token, capacity in tokens, instants in microseconds.
-- Clock: clock_timestamp(), read under the lock; the new version is never installed before the one it replaces.
-- Locks: the row of ration.policy_set, first: policy changes are one after the other. Decisions wait for none of this.
-- SQLSTATE: RN003 from clock_v1; RN005 the figures are not those of the content, or capacity times d is 2^62 or more; 23514
--           another bound of the table.
CREATE OR REPLACE FUNCTION ration.put_policy_v1(
    p_id text, p_expected int, p_content json, p_n bigint, p_d bigint, p_capacity bigint, p_balances text,
    p_actor text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL,
    OUT o_outcome text, OUT o_number int, OUT o_version int, OUT o_installed_at bigint, OUT o_generation bigint,
    OUT o_restarts text[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_before ration.policy_version;
    v_idle   record;
    v_units  bigint;
BEGIN
    -- In numeric, and true or refused: a missing figure must not pass for an equal one.
    IF (p_n::numeric * 1000000 * (p_content #>> '{limit,refillSeconds}')::numeric
            = p_d::numeric * (p_content #>> '{limit,refillTokens}')::numeric
        AND (p_content #>> '{limit,refillSeconds}')::numeric > 0
        AND p_capacity::numeric = (p_content #>> '{limit,capacity}')::numeric
        AND p_capacity::numeric * p_d < 2::numeric ^ 62) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN005', MESSAGE = 'n, d and capacity are not those of the policy''s content, or too large';
    END IF;

    SELECT s.generation INTO o_generation FROM ration.policy_set AS s FOR UPDATE;
    SELECT v.* INTO v_before FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version) WHERE p.id = p_id;
    o_number := v_before.number;
    o_version := coalesce(v_before.version, 0);
    o_installed_at := v_before.installed_at;
    IF o_version IS DISTINCT FROM p_expected THEN
        o_outcome := 'conflict';
        RETURN;
    END IF;
    IF v_before.content::text = p_content::text THEN
        o_outcome := 'unchanged';
        RETURN;
    END IF;

    IF o_version > 0 THEN
        SELECT array_agg(m.path) INTO o_restarts
        FROM unnest(ARRAY['per', 'ipPrefix', 'durability', 'scope', 'limit,algorithm']) AS m (path)
        WHERE (v_before.content #> string_to_array(m.path, ','))::text IS DISTINCT FROM (p_content #> string_to_array(m.path, ','))::text;
        IF o_restarts IS NOT NULL THEN
            o_outcome := 'restart';
            RETURN;
        END IF;
    END IF;

    o_outcome := CASE WHEN o_version = 0 THEN 'created' ELSE 'changed' END;
    o_version := o_version + 1;
    o_generation := o_generation + 1;
    o_installed_at := greatest(ration.clock_v1(p_now), v_before.installed_at);
    v_units := p_capacity * p_d;
    IF o_outcome = 'created' THEN
        -- The idle bucket of a first version is full from its installation on.
        INSERT INTO ration.policy (id, version, durability, n, d, capacity, capacity_units, idle_balance, idle_at, generation)
        VALUES (p_id, o_version, p_content ->> 'durability', p_n, p_d, p_capacity, v_units, v_units, o_installed_at, o_generation)
        RETURNING number INTO o_number;
    END IF;
    INSERT INTO ration.policy_version (number, version, content, n, d, capacity, capacity_units, idle_balance, idle_at,
                                       balances, installed_at, generation)
    VALUES (o_number, o_version, p_content, p_n, p_d, p_capacity, v_units, v_units, o_installed_at,
            p_balances, o_installed_at, o_generation);
    IF o_outcome = 'changed' THEN
        -- The idle bucket goes through the change as every bucket does.
        v_idle := ration.carry_v1(o_number, v_before.version, o_version, v_before.idle_balance, v_before.idle_at);
        UPDATE ration.policy_version SET idle_balance = v_idle.o_balance, idle_at = v_idle.o_at
        WHERE number = o_number AND version = o_version;
        UPDATE ration.policy
        SET version = o_version, n = p_n, d = p_d, capacity = p_capacity, capacity_units = v_units,
            idle_balance = v_idle.o_balance, idle_at = v_idle.o_at, generation = o_generation
        WHERE number = o_number;
    END IF;
    UPDATE ration.policy_set SET generation = o_generation;
    INSERT INTO ration.audit (at, actor, action, policy, version_before, version_after, before, after, reason, request_id)
    VALUES (o_installed_at, p_actor, 'policy.' || o_outcome, p_id, v_before.version, o_version, v_before.content, p_content,
            p_reason, p_request_id);
    PERFORM pg_notify('ration_policy', o_generation::text);
END $$;

-- key_field_v1: one field of a key's encoding: its length as four bytes, most significant first, then its bytes.
--
-- Units: bytes. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.key_field_v1(p_field bytea)
RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN int4send(length(p_field)) || p_field;

-- key_address_v1: name and value of an address in a key's encoding: 'ip/' with the prefix length, and the 4 or 16 bytes
-- of the address with all later bits zero. An IPv4-mapped IPv6 address is taken as the IPv4 address that it is.
--
-- Units: prefix lengths in bits. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.key_address_v1(p_address inet, p_bits_v4 int, p_bits_v6 int, OUT name text, OUT value bytea)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_address inet := set_masklen(p_address, CASE family(p_address) WHEN 4 THEN 32 ELSE 128 END);
    v_bits    int;
BEGIN
    IF v_address << inet '::ffff:0:0/96' THEN
        v_address := inet '0.0.0.0' + (v_address - inet '::ffff:0:0');
    END IF;
    v_bits := CASE family(v_address) WHEN 4 THEN p_bits_v4 ELSE p_bits_v6 END;
    name := 'ip/' || v_bits;
    -- inet_send gives family, bits, kind and length in one byte each, then the address.
    value := substr(inet_send(network(set_masklen(v_address, v_bits))::inet), 5);
END $$;

-- fold_case_v1: Unicode case folding, the same in every version and collation. Generated by internal/gen/casefold
-- from the tables of golang.org/x/text (Unicode 15.0.0); do not edit.
--
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.fold_case_v1(p_text text)
RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- Characters that fold to several, and what they fold to.
    v_long constant text[] := ARRAY[
        U&'\00DF', U&'\0130', U&'\0149', U&'\01F0', U&'\0390',
        U&'\03B0', U&'\0587', U&'\1E96', U&'\1E97', U&'\1E98',
        U&'\1E99', U&'\1E9A', U&'\1E9E', U&'\1F50', U&'\1F52',
        U&'\1F54', U&'\1F56', U&'\1F80', U&'\1F81', U&'\1F82',
        U&'\1F83', U&'\1F84', U&'\1F85', U&'\1F86', U&'\1F87',
        U&'\1F88', U&'\1F89', U&'\1F8A', U&'\1F8B', U&'\1F8C',
        U&'\1F8D', U&'\1F8E', U&'\1F8F', U&'\1F90', U&'\1F91',
        U&'\1F92', U&'\1F93', U&'\1F94', U&'\1F95', U&'\1F96',
        U&'\1F97', U&'\1F98', U&'\1F99', U&'\1F9A', U&'\1F9B',
        U&'\1F9C', U&'\1F9D', U&'\1F9E', U&'\1F9F', U&'\1FA0',
        U&'\1FA1', U&'\1FA2', U&'\1FA3', U&'\1FA4', U&'\1FA5',
        U&'\1FA6', U&'\1FA7', U&'\1FA8', U&'\1FA9', U&'\1FAA',
        U&'\1FAB', U&'\1FAC', U&'\1FAD', U&'\1FAE', U&'\1FAF',
        U&'\1FB2', U&'\1FB3', U&'\1FB4', U&'\1FB6', U&'\1FB7',
        U&'\1FBC', U&'\1FC2', U&'\1FC3', U&'\1FC4', U&'\1FC6',
        U&'\1FC7', U&'\1FCC', U&'\1FD2', U&'\1FD3', U&'\1FD6',
        U&'\1FD7', U&'\1FE2', U&'\1FE3', U&'\1FE4', U&'\1FE6',
        U&'\1FE7', U&'\1FF2', U&'\1FF3', U&'\1FF4', U&'\1FF6',
        U&'\1FF7', U&'\1FFC', U&'\FB00', U&'\FB01', U&'\FB02',
        U&'\FB03', U&'\FB04', U&'\FB05', U&'\FB06', U&'\FB13',
        U&'\FB14', U&'\FB15', U&'\FB16', U&'\FB17'];
    v_fold constant text[] := ARRAY[
        U&'\0073\0073', U&'\0069\0307', U&'\02BC\006E', U&'\006A\030C', U&'\03B9\0308\0301',
        U&'\03C5\0308\0301', U&'\0565\0582', U&'\0068\0331', U&'\0074\0308', U&'\0077\030A',
        U&'\0079\030A', U&'\0061\02BE', U&'\0073\0073', U&'\03C5\0313', U&'\03C5\0313\0300',
        U&'\03C5\0313\0301', U&'\03C5\0313\0342', U&'\1F00\03B9', U&'\1F01\03B9', U&'\1F02\03B9',
        U&'\1F03\03B9', U&'\1F04\03B9', U&'\1F05\03B9', U&'\1F06\03B9', U&'\1F07\03B9',
        U&'\1F00\03B9', U&'\1F01\03B9', U&'\1F02\03B9', U&'\1F03\03B9', U&'\1F04\03B9',
        U&'\1F05\03B9', U&'\1F06\03B9', U&'\1F07\03B9', U&'\1F20\03B9', U&'\1F21\03B9',
        U&'\1F22\03B9', U&'\1F23\03B9', U&'\1F24\03B9', U&'\1F25\03B9', U&'\1F26\03B9',
        U&'\1F27\03B9', U&'\1F20\03B9', U&'\1F21\03B9', U&'\1F22\03B9', U&'\1F23\03B9',
        U&'\1F24\03B9', U&'\1F25\03B9', U&'\1F26\03B9', U&'\1F27\03B9', U&'\1F60\03B9',
        U&'\1F61\03B9', U&'\1F62\03B9', U&'\1F63\03B9', U&'\1F64\03B9', U&'\1F65\03B9',
        U&'\1F66\03B9', U&'\1F67\03B9', U&'\1F60\03B9', U&'\1F61\03B9', U&'\1F62\03B9',
        U&'\1F63\03B9', U&'\1F64\03B9', U&'\1F65\03B9', U&'\1F66\03B9', U&'\1F67\03B9',
        U&'\1F70\03B9', U&'\03B1\03B9', U&'\03AC\03B9', U&'\03B1\0342', U&'\03B1\0342\03B9',
        U&'\03B1\03B9', U&'\1F74\03B9', U&'\03B7\03B9', U&'\03AE\03B9', U&'\03B7\0342',
        U&'\03B7\0342\03B9', U&'\03B7\03B9', U&'\03B9\0308\0300', U&'\03B9\0308\0301', U&'\03B9\0342',
        U&'\03B9\0308\0342', U&'\03C5\0308\0300', U&'\03C5\0308\0301', U&'\03C1\0313', U&'\03C5\0342',
        U&'\03C5\0308\0342', U&'\1F7C\03B9', U&'\03C9\03B9', U&'\03CE\03B9', U&'\03C9\0342',
        U&'\03C9\0342\03B9', U&'\03C9\03B9', U&'\0066\0066', U&'\0066\0069', U&'\0066\006C',
        U&'\0066\0066\0069', U&'\0066\0066\006C', U&'\0073\0074', U&'\0073\0074', U&'\0574\0576',
        U&'\0574\0565', U&'\0574\056B', U&'\057E\0576', U&'\0574\056D'];
BEGIN
    p_text := translate(p_text,
        U&'\0041\0042\0043\0044\0045\0046\0047\0048\0049\004A\004B\004C\004D\004E\004F\0050\0051\0052\0053\0054'
        '\0055\0056\0057\0058\0059\005A\00B5\00C0\00C1\00C2\00C3\00C4\00C5\00C6\00C7\00C8\00C9\00CA\00CB\00CC'
        '\00CD\00CE\00CF\00D0\00D1\00D2\00D3\00D4\00D5\00D6\00D8\00D9\00DA\00DB\00DC\00DD\00DE\0100\0102\0104'
        '\0106\0108\010A\010C\010E\0110\0112\0114\0116\0118\011A\011C\011E\0120\0122\0124\0126\0128\012A\012C'
        '\012E\0132\0134\0136\0139\013B\013D\013F\0141\0143\0145\0147\014A\014C\014E\0150\0152\0154\0156\0158'
        '\015A\015C\015E\0160\0162\0164\0166\0168\016A\016C\016E\0170\0172\0174\0176\0178\0179\017B\017D\017F'
        '\0181\0182\0184\0186\0187\0189\018A\018B\018E\018F\0190\0191\0193\0194\0196\0197\0198\019C\019D\019F'
        '\01A0\01A2\01A4\01A6\01A7\01A9\01AC\01AE\01AF\01B1\01B2\01B3\01B5\01B7\01B8\01BC\01C4\01C5\01C7\01C8'
        '\01CA\01CB\01CD\01CF\01D1\01D3\01D5\01D7\01D9\01DB\01DE\01E0\01E2\01E4\01E6\01E8\01EA\01EC\01EE\01F1'
        '\01F2\01F4\01F6\01F7\01F8\01FA\01FC\01FE\0200\0202\0204\0206\0208\020A\020C\020E\0210\0212\0214\0216'
        '\0218\021A\021C\021E\0220\0222\0224\0226\0228\022A\022C\022E\0230\0232\023A\023B\023D\023E\0241\0243'
        '\0244\0245\0246\0248\024A\024C\024E\0345\0370\0372\0376\037F\0386\0388\0389\038A\038C\038E\038F\0391'
        '\0392\0393\0394\0395\0396\0397\0398\0399\039A\039B\039C\039D\039E\039F\03A0\03A1\03A3\03A4\03A5\03A6'
        '\03A7\03A8\03A9\03AA\03AB\03C2\03CF\03D0\03D1\03D5\03D6\03D8\03DA\03DC\03DE\03E0\03E2\03E4\03E6\03E8'
        '\03EA\03EC\03EE\03F0\03F1\03F4\03F5\03F7\03F9\03FA\03FD\03FE\03FF\0400\0401\0402\0403\0404\0405\0406'
        '\0407\0408\0409\040A\040B\040C\040D\040E\040F\0410\0411\0412\0413\0414\0415\0416\0417\0418\0419\041A'
        '\041B\041C\041D\041E\041F\0420\0421\0422\0423\0424\0425\0426\0427\0428\0429\042A\042B\042C\042D\042E'
        '\042F\0460\0462\0464\0466\0468\046A\046C\046E\0470\0472\0474\0476\0478\047A\047C\047E\0480\048A\048C'
        '\048E\0490\0492\0494\0496\0498\049A\049C\049E\04A0\04A2\04A4\04A6\04A8\04AA\04AC\04AE\04B0\04B2\04B4'
        '\04B6\04B8\04BA\04BC\04BE\04C0\04C1\04C3\04C5\04C7\04C9\04CB\04CD\04D0\04D2\04D4\04D6\04D8\04DA\04DC'
        '\04DE\04E0\04E2\04E4\04E6\04E8\04EA\04EC\04EE\04F0\04F2\04F4\04F6\04F8\04FA\04FC\04FE\0500\0502\0504'
        '\0506\0508\050A\050C\050E\0510\0512\0514\0516\0518\051A\051C\051E\0520\0522\0524\0526\0528\052A\052C'
        '\052E\0531\0532\0533\0534\0535\0536\0537\0538\0539\053A\053B\053C\053D\053E\053F\0540\0541\0542\0543'
        '\0544\0545\0546\0547\0548\0549\054A\054B\054C\054D\054E\054F\0550\0551\0552\0553\0554\0555\0556\10A0'
        '\10A1\10A2\10A3\10A4\10A5\10A6\10A7\10A8\10A9\10AA\10AB\10AC\10AD\10AE\10AF\10B0\10B1\10B2\10B3\10B4'
        '\10B5\10B6\10B7\10B8\10B9\10BA\10BB\10BC\10BD\10BE\10BF\10C0\10C1\10C2\10C3\10C4\10C5\10C7\10CD\13F8'
        '\13F9\13FA\13FB\13FC\13FD\1C80\1C81\1C82\1C83\1C84\1C85\1C86\1C87\1C88\1C90\1C91\1C92\1C93\1C94\1C95'
        '\1C96\1C97\1C98\1C99\1C9A\1C9B\1C9C\1C9D\1C9E\1C9F\1CA0\1CA1\1CA2\1CA3\1CA4\1CA5\1CA6\1CA7\1CA8\1CA9'
        '\1CAA\1CAB\1CAC\1CAD\1CAE\1CAF\1CB0\1CB1\1CB2\1CB3\1CB4\1CB5\1CB6\1CB7\1CB8\1CB9\1CBA\1CBD\1CBE\1CBF'
        '\1E00\1E02\1E04\1E06\1E08\1E0A\1E0C\1E0E\1E10\1E12\1E14\1E16\1E18\1E1A\1E1C\1E1E\1E20\1E22\1E24\1E26'
        '\1E28\1E2A\1E2C\1E2E\1E30\1E32\1E34\1E36\1E38\1E3A\1E3C\1E3E\1E40\1E42\1E44\1E46\1E48\1E4A\1E4C\1E4E'
        '\1E50\1E52\1E54\1E56\1E58\1E5A\1E5C\1E5E\1E60\1E62\1E64\1E66\1E68\1E6A\1E6C\1E6E\1E70\1E72\1E74\1E76'
        '\1E78\1E7A\1E7C\1E7E\1E80\1E82\1E84\1E86\1E88\1E8A\1E8C\1E8E\1E90\1E92\1E94\1E9B\1EA0\1EA2\1EA4\1EA6'
        '\1EA8\1EAA\1EAC\1EAE\1EB0\1EB2\1EB4\1EB6\1EB8\1EBA\1EBC\1EBE\1EC0\1EC2\1EC4\1EC6\1EC8\1ECA\1ECC\1ECE'
        '\1ED0\1ED2\1ED4\1ED6\1ED8\1EDA\1EDC\1EDE\1EE0\1EE2\1EE4\1EE6\1EE8\1EEA\1EEC\1EEE\1EF0\1EF2\1EF4\1EF6'
        '\1EF8\1EFA\1EFC\1EFE\1F08\1F09\1F0A\1F0B\1F0C\1F0D\1F0E\1F0F\1F18\1F19\1F1A\1F1B\1F1C\1F1D\1F28\1F29'
        '\1F2A\1F2B\1F2C\1F2D\1F2E\1F2F\1F38\1F39\1F3A\1F3B\1F3C\1F3D\1F3E\1F3F\1F48\1F49\1F4A\1F4B\1F4C\1F4D'
        '\1F59\1F5B\1F5D\1F5F\1F68\1F69\1F6A\1F6B\1F6C\1F6D\1F6E\1F6F\1FB8\1FB9\1FBA\1FBB\1FBE\1FC8\1FC9\1FCA'
        '\1FCB\1FD8\1FD9\1FDA\1FDB\1FE8\1FE9\1FEA\1FEB\1FEC\1FF8\1FF9\1FFA\1FFB\2126\212A\212B\2132\2160\2161'
        '\2162\2163\2164\2165\2166\2167\2168\2169\216A\216B\216C\216D\216E\216F\2183\24B6\24B7\24B8\24B9\24BA'
        '\24BB\24BC\24BD\24BE\24BF\24C0\24C1\24C2\24C3\24C4\24C5\24C6\24C7\24C8\24C9\24CA\24CB\24CC\24CD\24CE'
        '\24CF\2C00\2C01\2C02\2C03\2C04\2C05\2C06\2C07\2C08\2C09\2C0A\2C0B\2C0C\2C0D\2C0E\2C0F\2C10\2C11\2C12'
        '\2C13\2C14\2C15\2C16\2C17\2C18\2C19\2C1A\2C1B\2C1C\2C1D\2C1E\2C1F\2C20\2C21\2C22\2C23\2C24\2C25\2C26'
        '\2C27\2C28\2C29\2C2A\2C2B\2C2C\2C2D\2C2E\2C2F\2C60\2C62\2C63\2C64\2C67\2C69\2C6B\2C6D\2C6E\2C6F\2C70'
        '\2C72\2C75\2C7E\2C7F\2C80\2C82\2C84\2C86\2C88\2C8A\2C8C\2C8E\2C90\2C92\2C94\2C96\2C98\2C9A\2C9C\2C9E'
        '\2CA0\2CA2\2CA4\2CA6\2CA8\2CAA\2CAC\2CAE\2CB0\2CB2\2CB4\2CB6\2CB8\2CBA\2CBC\2CBE\2CC0\2CC2\2CC4\2CC6'
        '\2CC8\2CCA\2CCC\2CCE\2CD0\2CD2\2CD4\2CD6\2CD8\2CDA\2CDC\2CDE\2CE0\2CE2\2CEB\2CED\2CF2\A640\A642\A644'
        '\A646\A648\A64A\A64C\A64E\A650\A652\A654\A656\A658\A65A\A65C\A65E\A660\A662\A664\A666\A668\A66A\A66C'
        '\A680\A682\A684\A686\A688\A68A\A68C\A68E\A690\A692\A694\A696\A698\A69A\A722\A724\A726\A728\A72A\A72C'
        '\A72E\A732\A734\A736\A738\A73A\A73C\A73E\A740\A742\A744\A746\A748\A74A\A74C\A74E\A750\A752\A754\A756'
        '\A758\A75A\A75C\A75E\A760\A762\A764\A766\A768\A76A\A76C\A76E\A779\A77B\A77D\A77E\A780\A782\A784\A786'
        '\A78B\A78D\A790\A792\A796\A798\A79A\A79C\A79E\A7A0\A7A2\A7A4\A7A6\A7A8\A7AA\A7AB\A7AC\A7AD\A7AE\A7B0'
        '\A7B1\A7B2\A7B3\A7B4\A7B6\A7B8\A7BA\A7BC\A7BE\A7C0\A7C2\A7C4\A7C5\A7C6\A7C7\A7C9\A7D0\A7D6\A7D8\A7F5'
        '\AB70\AB71\AB72\AB73\AB74\AB75\AB76\AB77\AB78\AB79\AB7A\AB7B\AB7C\AB7D\AB7E\AB7F\AB80\AB81\AB82\AB83'
        '\AB84\AB85\AB86\AB87\AB88\AB89\AB8A\AB8B\AB8C\AB8D\AB8E\AB8F\AB90\AB91\AB92\AB93\AB94\AB95\AB96\AB97'
        '\AB98\AB99\AB9A\AB9B\AB9C\AB9D\AB9E\AB9F\ABA0\ABA1\ABA2\ABA3\ABA4\ABA5\ABA6\ABA7\ABA8\ABA9\ABAA\ABAB'
        '\ABAC\ABAD\ABAE\ABAF\ABB0\ABB1\ABB2\ABB3\ABB4\ABB5\ABB6\ABB7\ABB8\ABB9\ABBA\ABBB\ABBC\ABBD\ABBE\ABBF'
        '\FF21\FF22\FF23\FF24\FF25\FF26\FF27\FF28\FF29\FF2A\FF2B\FF2C\FF2D\FF2E\FF2F\FF30\FF31\FF32\FF33\FF34'
        '\FF35\FF36\FF37\FF38\FF39\FF3A\+010400\+010401\+010402\+010403\+010404\+010405\+010406\+010407\+010408\+010409\+01040A\+01040B\+01040C\+01040D'
        '\+01040E\+01040F\+010410\+010411\+010412\+010413\+010414\+010415\+010416\+010417\+010418\+010419\+01041A\+01041B\+01041C\+01041D\+01041E\+01041F\+010420\+010421'
        '\+010422\+010423\+010424\+010425\+010426\+010427\+0104B0\+0104B1\+0104B2\+0104B3\+0104B4\+0104B5\+0104B6\+0104B7\+0104B8\+0104B9\+0104BA\+0104BB\+0104BC\+0104BD'
        '\+0104BE\+0104BF\+0104C0\+0104C1\+0104C2\+0104C3\+0104C4\+0104C5\+0104C6\+0104C7\+0104C8\+0104C9\+0104CA\+0104CB\+0104CC\+0104CD\+0104CE\+0104CF\+0104D0\+0104D1'
        '\+0104D2\+0104D3\+010570\+010571\+010572\+010573\+010574\+010575\+010576\+010577\+010578\+010579\+01057A\+01057C\+01057D\+01057E\+01057F\+010580\+010581\+010582'
        '\+010583\+010584\+010585\+010586\+010587\+010588\+010589\+01058A\+01058C\+01058D\+01058E\+01058F\+010590\+010591\+010592\+010594\+010595\+010C80\+010C81\+010C82'
        '\+010C83\+010C84\+010C85\+010C86\+010C87\+010C88\+010C89\+010C8A\+010C8B\+010C8C\+010C8D\+010C8E\+010C8F\+010C90\+010C91\+010C92\+010C93\+010C94\+010C95\+010C96'
        '\+010C97\+010C98\+010C99\+010C9A\+010C9B\+010C9C\+010C9D\+010C9E\+010C9F\+010CA0\+010CA1\+010CA2\+010CA3\+010CA4\+010CA5\+010CA6\+010CA7\+010CA8\+010CA9\+010CAA'
        '\+010CAB\+010CAC\+010CAD\+010CAE\+010CAF\+010CB0\+010CB1\+010CB2\+0118A0\+0118A1\+0118A2\+0118A3\+0118A4\+0118A5\+0118A6\+0118A7\+0118A8\+0118A9\+0118AA\+0118AB'
        '\+0118AC\+0118AD\+0118AE\+0118AF\+0118B0\+0118B1\+0118B2\+0118B3\+0118B4\+0118B5\+0118B6\+0118B7\+0118B8\+0118B9\+0118BA\+0118BB\+0118BC\+0118BD\+0118BE\+0118BF'
        '\+016E40\+016E41\+016E42\+016E43\+016E44\+016E45\+016E46\+016E47\+016E48\+016E49\+016E4A\+016E4B\+016E4C\+016E4D\+016E4E\+016E4F\+016E50\+016E51\+016E52\+016E53'
        '\+016E54\+016E55\+016E56\+016E57\+016E58\+016E59\+016E5A\+016E5B\+016E5C\+016E5D\+016E5E\+016E5F\+01E900\+01E901\+01E902\+01E903\+01E904\+01E905\+01E906\+01E907'
        '\+01E908\+01E909\+01E90A\+01E90B\+01E90C\+01E90D\+01E90E\+01E90F\+01E910\+01E911\+01E912\+01E913\+01E914\+01E915\+01E916\+01E917\+01E918\+01E919\+01E91A\+01E91B'
        '\+01E91C\+01E91D\+01E91E\+01E91F\+01E920\+01E921',
        U&'\0061\0062\0063\0064\0065\0066\0067\0068\0069\006A\006B\006C\006D\006E\006F\0070\0071\0072\0073\0074'
        '\0075\0076\0077\0078\0079\007A\03BC\00E0\00E1\00E2\00E3\00E4\00E5\00E6\00E7\00E8\00E9\00EA\00EB\00EC'
        '\00ED\00EE\00EF\00F0\00F1\00F2\00F3\00F4\00F5\00F6\00F8\00F9\00FA\00FB\00FC\00FD\00FE\0101\0103\0105'
        '\0107\0109\010B\010D\010F\0111\0113\0115\0117\0119\011B\011D\011F\0121\0123\0125\0127\0129\012B\012D'
        '\012F\0133\0135\0137\013A\013C\013E\0140\0142\0144\0146\0148\014B\014D\014F\0151\0153\0155\0157\0159'
        '\015B\015D\015F\0161\0163\0165\0167\0169\016B\016D\016F\0171\0173\0175\0177\00FF\017A\017C\017E\0073'
        '\0253\0183\0185\0254\0188\0256\0257\018C\01DD\0259\025B\0192\0260\0263\0269\0268\0199\026F\0272\0275'
        '\01A1\01A3\01A5\0280\01A8\0283\01AD\0288\01B0\028A\028B\01B4\01B6\0292\01B9\01BD\01C6\01C6\01C9\01C9'
        '\01CC\01CC\01CE\01D0\01D2\01D4\01D6\01D8\01DA\01DC\01DF\01E1\01E3\01E5\01E7\01E9\01EB\01ED\01EF\01F3'
        '\01F3\01F5\0195\01BF\01F9\01FB\01FD\01FF\0201\0203\0205\0207\0209\020B\020D\020F\0211\0213\0215\0217'
        '\0219\021B\021D\021F\019E\0223\0225\0227\0229\022B\022D\022F\0231\0233\2C65\023C\019A\2C66\0242\0180'
        '\0289\028C\0247\0249\024B\024D\024F\03B9\0371\0373\0377\03F3\03AC\03AD\03AE\03AF\03CC\03CD\03CE\03B1'
        '\03B2\03B3\03B4\03B5\03B6\03B7\03B8\03B9\03BA\03BB\03BC\03BD\03BE\03BF\03C0\03C1\03C3\03C4\03C5\03C6'
        '\03C7\03C8\03C9\03CA\03CB\03C3\03D7\03B2\03B8\03C6\03C0\03D9\03DB\03DD\03DF\03E1\03E3\03E5\03E7\03E9'
        '\03EB\03ED\03EF\03BA\03C1\03B8\03B5\03F8\03F2\03FB\037B\037C\037D\0450\0451\0452\0453\0454\0455\0456'
        '\0457\0458\0459\045A\045B\045C\045D\045E\045F\0430\0431\0432\0433\0434\0435\0436\0437\0438\0439\043A'
        '\043B\043C\043D\043E\043F\0440\0441\0442\0443\0444\0445\0446\0447\0448\0449\044A\044B\044C\044D\044E'
        '\044F\0461\0463\0465\0467\0469\046B\046D\046F\0471\0473\0475\0477\0479\047B\047D\047F\0481\048B\048D'
        '\048F\0491\0493\0495\0497\0499\049B\049D\049F\04A1\04A3\04A5\04A7\04A9\04AB\04AD\04AF\04B1\04B3\04B5'
        '\04B7\04B9\04BB\04BD\04BF\04CF\04C2\04C4\04C6\04C8\04CA\04CC\04CE\04D1\04D3\04D5\04D7\04D9\04DB\04DD'
        '\04DF\04E1\04E3\04E5\04E7\04E9\04EB\04ED\04EF\04F1\04F3\04F5\04F7\04F9\04FB\04FD\04FF\0501\0503\0505'
        '\0507\0509\050B\050D\050F\0511\0513\0515\0517\0519\051B\051D\051F\0521\0523\0525\0527\0529\052B\052D'
        '\052F\0561\0562\0563\0564\0565\0566\0567\0568\0569\056A\056B\056C\056D\056E\056F\0570\0571\0572\0573'
        '\0574\0575\0576\0577\0578\0579\057A\057B\057C\057D\057E\057F\0580\0581\0582\0583\0584\0585\0586\2D00'
        '\2D01\2D02\2D03\2D04\2D05\2D06\2D07\2D08\2D09\2D0A\2D0B\2D0C\2D0D\2D0E\2D0F\2D10\2D11\2D12\2D13\2D14'
        '\2D15\2D16\2D17\2D18\2D19\2D1A\2D1B\2D1C\2D1D\2D1E\2D1F\2D20\2D21\2D22\2D23\2D24\2D25\2D27\2D2D\13F0'
        '\13F1\13F2\13F3\13F4\13F5\0432\0434\043E\0441\0442\0442\044A\0463\A64B\10D0\10D1\10D2\10D3\10D4\10D5'
        '\10D6\10D7\10D8\10D9\10DA\10DB\10DC\10DD\10DE\10DF\10E0\10E1\10E2\10E3\10E4\10E5\10E6\10E7\10E8\10E9'
        '\10EA\10EB\10EC\10ED\10EE\10EF\10F0\10F1\10F2\10F3\10F4\10F5\10F6\10F7\10F8\10F9\10FA\10FD\10FE\10FF'
        '\1E01\1E03\1E05\1E07\1E09\1E0B\1E0D\1E0F\1E11\1E13\1E15\1E17\1E19\1E1B\1E1D\1E1F\1E21\1E23\1E25\1E27'
        '\1E29\1E2B\1E2D\1E2F\1E31\1E33\1E35\1E37\1E39\1E3B\1E3D\1E3F\1E41\1E43\1E45\1E47\1E49\1E4B\1E4D\1E4F'
        '\1E51\1E53\1E55\1E57\1E59\1E5B\1E5D\1E5F\1E61\1E63\1E65\1E67\1E69\1E6B\1E6D\1E6F\1E71\1E73\1E75\1E77'
        '\1E79\1E7B\1E7D\1E7F\1E81\1E83\1E85\1E87\1E89\1E8B\1E8D\1E8F\1E91\1E93\1E95\1E61\1EA1\1EA3\1EA5\1EA7'
        '\1EA9\1EAB\1EAD\1EAF\1EB1\1EB3\1EB5\1EB7\1EB9\1EBB\1EBD\1EBF\1EC1\1EC3\1EC5\1EC7\1EC9\1ECB\1ECD\1ECF'
        '\1ED1\1ED3\1ED5\1ED7\1ED9\1EDB\1EDD\1EDF\1EE1\1EE3\1EE5\1EE7\1EE9\1EEB\1EED\1EEF\1EF1\1EF3\1EF5\1EF7'
        '\1EF9\1EFB\1EFD\1EFF\1F00\1F01\1F02\1F03\1F04\1F05\1F06\1F07\1F10\1F11\1F12\1F13\1F14\1F15\1F20\1F21'
        '\1F22\1F23\1F24\1F25\1F26\1F27\1F30\1F31\1F32\1F33\1F34\1F35\1F36\1F37\1F40\1F41\1F42\1F43\1F44\1F45'
        '\1F51\1F53\1F55\1F57\1F60\1F61\1F62\1F63\1F64\1F65\1F66\1F67\1FB0\1FB1\1F70\1F71\03B9\1F72\1F73\1F74'
        '\1F75\1FD0\1FD1\1F76\1F77\1FE0\1FE1\1F7A\1F7B\1FE5\1F78\1F79\1F7C\1F7D\03C9\006B\00E5\214E\2170\2171'
        '\2172\2173\2174\2175\2176\2177\2178\2179\217A\217B\217C\217D\217E\217F\2184\24D0\24D1\24D2\24D3\24D4'
        '\24D5\24D6\24D7\24D8\24D9\24DA\24DB\24DC\24DD\24DE\24DF\24E0\24E1\24E2\24E3\24E4\24E5\24E6\24E7\24E8'
        '\24E9\2C30\2C31\2C32\2C33\2C34\2C35\2C36\2C37\2C38\2C39\2C3A\2C3B\2C3C\2C3D\2C3E\2C3F\2C40\2C41\2C42'
        '\2C43\2C44\2C45\2C46\2C47\2C48\2C49\2C4A\2C4B\2C4C\2C4D\2C4E\2C4F\2C50\2C51\2C52\2C53\2C54\2C55\2C56'
        '\2C57\2C58\2C59\2C5A\2C5B\2C5C\2C5D\2C5E\2C5F\2C61\026B\1D7D\027D\2C68\2C6A\2C6C\0251\0271\0250\0252'
        '\2C73\2C76\023F\0240\2C81\2C83\2C85\2C87\2C89\2C8B\2C8D\2C8F\2C91\2C93\2C95\2C97\2C99\2C9B\2C9D\2C9F'
        '\2CA1\2CA3\2CA5\2CA7\2CA9\2CAB\2CAD\2CAF\2CB1\2CB3\2CB5\2CB7\2CB9\2CBB\2CBD\2CBF\2CC1\2CC3\2CC5\2CC7'
        '\2CC9\2CCB\2CCD\2CCF\2CD1\2CD3\2CD5\2CD7\2CD9\2CDB\2CDD\2CDF\2CE1\2CE3\2CEC\2CEE\2CF3\A641\A643\A645'
        '\A647\A649\A64B\A64D\A64F\A651\A653\A655\A657\A659\A65B\A65D\A65F\A661\A663\A665\A667\A669\A66B\A66D'
        '\A681\A683\A685\A687\A689\A68B\A68D\A68F\A691\A693\A695\A697\A699\A69B\A723\A725\A727\A729\A72B\A72D'
        '\A72F\A733\A735\A737\A739\A73B\A73D\A73F\A741\A743\A745\A747\A749\A74B\A74D\A74F\A751\A753\A755\A757'
        '\A759\A75B\A75D\A75F\A761\A763\A765\A767\A769\A76B\A76D\A76F\A77A\A77C\1D79\A77F\A781\A783\A785\A787'
        '\A78C\0265\A791\A793\A797\A799\A79B\A79D\A79F\A7A1\A7A3\A7A5\A7A7\A7A9\0266\025C\0261\026C\026A\029E'
        '\0287\029D\AB53\A7B5\A7B7\A7B9\A7BB\A7BD\A7BF\A7C1\A7C3\A794\0282\1D8E\A7C8\A7CA\A7D1\A7D7\A7D9\A7F6'
        '\13A0\13A1\13A2\13A3\13A4\13A5\13A6\13A7\13A8\13A9\13AA\13AB\13AC\13AD\13AE\13AF\13B0\13B1\13B2\13B3'
        '\13B4\13B5\13B6\13B7\13B8\13B9\13BA\13BB\13BC\13BD\13BE\13BF\13C0\13C1\13C2\13C3\13C4\13C5\13C6\13C7'
        '\13C8\13C9\13CA\13CB\13CC\13CD\13CE\13CF\13D0\13D1\13D2\13D3\13D4\13D5\13D6\13D7\13D8\13D9\13DA\13DB'
        '\13DC\13DD\13DE\13DF\13E0\13E1\13E2\13E3\13E4\13E5\13E6\13E7\13E8\13E9\13EA\13EB\13EC\13ED\13EE\13EF'
        '\FF41\FF42\FF43\FF44\FF45\FF46\FF47\FF48\FF49\FF4A\FF4B\FF4C\FF4D\FF4E\FF4F\FF50\FF51\FF52\FF53\FF54'
        '\FF55\FF56\FF57\FF58\FF59\FF5A\+010428\+010429\+01042A\+01042B\+01042C\+01042D\+01042E\+01042F\+010430\+010431\+010432\+010433\+010434\+010435'
        '\+010436\+010437\+010438\+010439\+01043A\+01043B\+01043C\+01043D\+01043E\+01043F\+010440\+010441\+010442\+010443\+010444\+010445\+010446\+010447\+010448\+010449'
        '\+01044A\+01044B\+01044C\+01044D\+01044E\+01044F\+0104D8\+0104D9\+0104DA\+0104DB\+0104DC\+0104DD\+0104DE\+0104DF\+0104E0\+0104E1\+0104E2\+0104E3\+0104E4\+0104E5'
        '\+0104E6\+0104E7\+0104E8\+0104E9\+0104EA\+0104EB\+0104EC\+0104ED\+0104EE\+0104EF\+0104F0\+0104F1\+0104F2\+0104F3\+0104F4\+0104F5\+0104F6\+0104F7\+0104F8\+0104F9'
        '\+0104FA\+0104FB\+010597\+010598\+010599\+01059A\+01059B\+01059C\+01059D\+01059E\+01059F\+0105A0\+0105A1\+0105A3\+0105A4\+0105A5\+0105A6\+0105A7\+0105A8\+0105A9'
        '\+0105AA\+0105AB\+0105AC\+0105AD\+0105AE\+0105AF\+0105B0\+0105B1\+0105B3\+0105B4\+0105B5\+0105B6\+0105B7\+0105B8\+0105B9\+0105BB\+0105BC\+010CC0\+010CC1\+010CC2'
        '\+010CC3\+010CC4\+010CC5\+010CC6\+010CC7\+010CC8\+010CC9\+010CCA\+010CCB\+010CCC\+010CCD\+010CCE\+010CCF\+010CD0\+010CD1\+010CD2\+010CD3\+010CD4\+010CD5\+010CD6'
        '\+010CD7\+010CD8\+010CD9\+010CDA\+010CDB\+010CDC\+010CDD\+010CDE\+010CDF\+010CE0\+010CE1\+010CE2\+010CE3\+010CE4\+010CE5\+010CE6\+010CE7\+010CE8\+010CE9\+010CEA'
        '\+010CEB\+010CEC\+010CED\+010CEE\+010CEF\+010CF0\+010CF1\+010CF2\+0118C0\+0118C1\+0118C2\+0118C3\+0118C4\+0118C5\+0118C6\+0118C7\+0118C8\+0118C9\+0118CA\+0118CB'
        '\+0118CC\+0118CD\+0118CE\+0118CF\+0118D0\+0118D1\+0118D2\+0118D3\+0118D4\+0118D5\+0118D6\+0118D7\+0118D8\+0118D9\+0118DA\+0118DB\+0118DC\+0118DD\+0118DE\+0118DF'
        '\+016E60\+016E61\+016E62\+016E63\+016E64\+016E65\+016E66\+016E67\+016E68\+016E69\+016E6A\+016E6B\+016E6C\+016E6D\+016E6E\+016E6F\+016E70\+016E71\+016E72\+016E73'
        '\+016E74\+016E75\+016E76\+016E77\+016E78\+016E79\+016E7A\+016E7B\+016E7C\+016E7D\+016E7E\+016E7F\+01E922\+01E923\+01E924\+01E925\+01E926\+01E927\+01E928\+01E929'
        '\+01E92A\+01E92B\+01E92C\+01E92D\+01E92E\+01E92F\+01E930\+01E931\+01E932\+01E933\+01E934\+01E935\+01E936\+01E937\+01E938\+01E939\+01E93A\+01E93B\+01E93C\+01E93D'
        '\+01E93E\+01E93F\+01E940\+01E941\+01E942\+01E943');
    FOR i IN 1 .. cardinality(v_long) LOOP
        p_text := replace(p_text, v_long[i], v_fold[i]);
    END LOOP;
    RETURN p_text;
END $$;

-- canonical_target_v1: the one form of all spellings of an account that a sign-in may aim at: white space trimmed, NFKC,
-- case-folded. policy.CanonicalTarget gives the same; characters newer than the server's Unicode are left as they are.
--
-- Units: none. Clock: none. Locks: none.
-- SQLSTATE: 42601 the database's encoding is not UTF8.
CREATE OR REPLACE FUNCTION ration.canonical_target_v1(p_text text)
RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- Unicode's White_Space property.
    v_space constant text := U&'\0009\000A\000B\000C\000D\0020\0085\00A0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200A'
                             '\2028\2029\202F\205F\3000';
    v_next  text;
BEGIN
    p_text := btrim(p_text, v_space);
    -- One pass is not stable: NFKC can bring forth a capital letter or a space, and folding can undo NFKC. Eight is margin.
    FOR i IN 1 .. 8 LOOP
        v_next := btrim(normalize(ration.fold_case_v1(normalize(p_text, NFKC)), NFKC), v_space);
        EXIT WHEN v_next = p_text;
        p_text := v_next;
    END LOOP;
    RETURN p_text;
END $$;

-- bucket_key: the key under which a policy in force keeps the bucket of a caller: the first 128 bits of the SHA-256 of
-- length-prefixed fields: 'ration.key.v1', the policy's id, then name and value of each attribute of its `per`, in the
-- order account, user, apiKey, oauthToken, ip, targetAccount, plan, region, operation. policy.KeyOf gives the same.
--
-- Arguments: a policy's id and the caller's attributes by name: {"account": "A", "operation": "report.create"}.
-- Answers: the key; NULL when there is no such policy or an attribute of its key is missing.
-- Units: none. Clock: none. Locks: none.
-- SQLSTATE: 22P02 the ip is no address.
CREATE OR REPLACE FUNCTION ration.bucket_key(p_policy text, p_attributes jsonb)
RETURNS uuid LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_spec     json;
    v_encoding bytea;
    v_name     text;
    v_text     text;
    v_value    bytea;
BEGIN
    SELECT v.content INTO v_spec
    FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version) WHERE p.id = p_policy;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    v_encoding := ration.key_field_v1(convert_to('ration.key.v1', 'UTF8')) || ration.key_field_v1(convert_to(p_policy, 'UTF8'));
    FOR v_name IN
        SELECT a.name
        FROM unnest(ARRAY['account', 'user', 'apiKey', 'oauthToken', 'ip', 'targetAccount', 'plan', 'region', 'operation'])
             WITH ORDINALITY AS a (name, place)
        WHERE a.name IN (SELECT json_array_elements_text(v_spec -> 'per'))
        ORDER BY a.place
    LOOP
        v_text := p_attributes ->> v_name;
        IF v_text IS NULL THEN
            RETURN NULL;
        END IF;
        IF v_name = 'ip' THEN
            SELECT k.name, k.value INTO v_name, v_value
            FROM ration.key_address_v1(v_text::inet, (v_spec #>> '{ipPrefix,v4}')::int, (v_spec #>> '{ipPrefix,v6}')::int) AS k;
        ELSIF v_name = 'targetAccount' THEN
            v_value := convert_to(ration.canonical_target_v1(v_text), 'UTF8');
        ELSE
            v_value := convert_to(v_text, 'UTF8');
        END IF;
        v_encoding := v_encoding || ration.key_field_v1(convert_to(v_name, 'UTF8')) || ration.key_field_v1(v_value);
    END LOOP;
    RETURN encode(substr(sha256(v_encoding), 1, 16), 'hex')::uuid;
END $$;

-- configure_roles_v1: what sessions of the service's role begin with in this database. Role settings in a database are
-- copied neither by CREATE DATABASE … TEMPLATE nor by pg_dump without --create: call it again there, as the owner.
--
-- Units: milliseconds in the settings. Clock: none. Locks: none.
-- SQLSTATE: 42501 the caller may not change the role.
CREATE OR REPLACE FUNCTION ration.configure_roles_v1()
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_setting text;
BEGIN
    FOREACH v_setting IN ARRAY ARRAY[
        -- A statement that waited for a lock must see what the holder left; the functions refuse stricter levels (RN001).
        'default_transaction_isolation = ''read committed''',
        -- The bound of a call. lock_timeout alone starts anew for every holder of a contended row.
        'statement_timeout = ''40ms''',
        'lock_timeout = ''40ms''',
        -- A transaction of the service is one call: a longer one is a fault that would hold back vacuum.
        'idle_in_transaction_session_timeout = ''10s''',
        -- The pinned plans forbid scans by a cost so high that PostgreSQL would compile every one of them: 50 ms a call.
        'jit = off']
    LOOP
        EXECUTE format('ALTER ROLE ration_service IN DATABASE %I SET %s', current_database(), v_setting);
    END LOOP;
END $$;

-- bucket_now: every stored bucket as it is at this instant: the whole tokens it holds and when it is full. For people;
-- it reads without locks. A key that is not listed is an idle bucket. Find a caller's row by
-- key = ration.bucket_key(policy, attributes).
CREATE OR REPLACE VIEW ration.bucket_now AS
SELECT p.id::text AS policy, b.key, b.shard, p.durability, b.version AS settled_version, p.version AS policy_version,
       greatest(0, held.balance / p.d) AS tokens, p.capacity,
       to_timestamp((clock.now + ration.wait_v1(p.capacity_units - held.balance, p.n, b.at - clock.now)) / 1000000.0) AS full_at
FROM (SELECT f.shard, f.key, f.policy, f.version, f.balance, f.at FROM ration.bucket_fast AS f
      UNION ALL
      SELECT d.shard, d.key, d.policy, d.version, d.balance, d.at FROM ration.bucket_durable AS d) AS b
JOIN ration.policy AS p ON p.number = b.policy
CROSS JOIN (SELECT ration.clock_v1() AS now) AS clock
CROSS JOIN LATERAL (SELECT ration.balance_at_v1(b.policy, b.version, b.balance, b.at, clock.now) AS balance) AS held;

-- The roles belong to the whole cluster, so another database may have made them, or may be making them now.
DO $$
DECLARE
    v_role text;
BEGIN
    FOREACH v_role IN ARRAY ARRAY['ration_service LOGIN', 'ration_operator NOLOGIN', 'ration_reader NOLOGIN'] LOOP
        BEGIN
            IF to_regrole(split_part(v_role, ' ', 1)) IS NULL THEN
                EXECUTE 'CREATE ROLE ' || v_role;
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;  -- the other migration was faster
        END;
    END LOOP;
END $$;

-- Who may do what. Everything else is the owner's alone.
--   ration_service   the process: runs the decision functions, reads policies
--   ration_operator  people on duty: what readers see, and upkeep by hand. Policies are changed over HTTP, where they are checked
--   ration_reader    dashboards: reads policies, their history and the buckets
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ration FROM PUBLIC;
GRANT USAGE ON SCHEMA ration TO ration_service, ration_operator, ration_reader;

GRANT SELECT ON ration.schema_version, ration.policy_set, ration.policy, ration.policy_version, ration.audit, ration.state_loss
    TO ration_service, ration_operator, ration_reader;
GRANT SELECT ON ration.bucket_now TO ration_service, ration_operator, ration_reader;
-- Called by the view with the rights of whoever looks.
GRANT EXECUTE ON FUNCTION ration.bucket_key, ration.key_field_v1, ration.key_address_v1, ration.canonical_target_v1,
    ration.fold_case_v1, ration.settled_v1, ration.wait_v1, ration.clock_v1, ration.carry_v1, ration.balance_at_v1
    TO ration_service, ration_operator, ration_reader;

GRANT EXECUTE ON FUNCTION ration.clean_v1, ration.recover_v1 TO ration_service, ration_operator;
GRANT EXECUTE ON FUNCTION ration.take_v1, ration.take_durable_v1, ration.take_new_v1, ration.take_new_durable_v1,
    ration.put_policy_v1
    TO ration_service;

SELECT ration.configure_roles_v1();
