-- The functions of the versions before, as 000002 has them.

UPDATE ration.schema_version SET minor = 0;

REVOKE SELECT ON ration.operation, ration.slot_parent, ration.slot FROM ration_service;

DROP VIEW ration.log_now, ration.slot_now, ration.window_now;

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

DROP FUNCTION ration.clean_operations_v1, ration.clean_slot_parents_v1, ration.clean_slots_v1, ration.clean_logs_v1,
    ration.clean_windows_v1, ration.stretch_v1, ration.renew_slot_v1, ration.release_slot_v1, ration.settle_v1,
    ration.settle_logs_v1, ration.settle_windows_v1, ration.settle_buckets_v1, ration.settling_v1,
    ration.log_corrected_v1, ration.corrected_v1, ration.decide_v1, ration.decide_write_v1, ration.decide_lock_v1,
    ration.decide_figures_v1, ration.decide_read_v1, ration.decide_replay_v1, ration.decide_guard_v1,
    ration.idle_log_v1, ration.log_wait_v1, ration.log_mark_v1, ration.log_live_v1, ration.log_charged_v1,
    ration.segment_v1, ration.window_wait_v1, ration.window_room_v1, ration.window_at_v1, ration.window_start_v1,
    ration.state_place_v1, ration.list_v1, ration.advisory_key_v1, ration.ready_v1, ration.slot_log_v1,
    ration.instant_v1;

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

-- wait_v1: how long it takes to earn some units, rounded up to the microsecond; 0 when there is nothing to earn.
--
-- Units: p_units in units of 1/d token, p_rate (n) in units per microsecond, p_ahead and the answer in microseconds:
--        p_ahead is how far the bucket's instant is ahead of the clock; nothing is earned before it is reached.
-- Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.wait_v1(p_units bigint, p_rate bigint, p_ahead bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_units > 0 THEN greatest(0, p_ahead) + (p_units - 1) / p_rate + 1 ELSE 0 END;

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
