-- Decisions on every algorithm and on several policies at once, operation ids, settlement, slots: the functions and views that
-- are new or changed, in the order in which each finds what it needs.

UPDATE ration.schema_version SET minor = 1;

-- instant_v1: the instant after a wait, for people: infinity, where that is beyond what microseconds can say.
--
-- Units: microseconds since 1970 (UTC), microseconds.
-- Clock: none, the instant is given. Locks: none. SQLSTATE: none: a deep debt takes longer than there is time.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.instant_v1(p_from bigint, p_wait bigint)
RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_wait > 9223372036854775807 - p_from THEN 'infinity'::timestamptz
            ELSE to_timestamp((p_from + p_wait) / 1000000.0) END;

-- slot_log_v1: the live slots of a concurrency key that expire first, as a log: pairs of expiry and cost, ascending by expiry.
--
-- Arguments: p_count is how many at most; as many as the units that are lacking are enough, since each holds one at least.
-- Units: microseconds, units of concurrency. Clock: none, the instant is given. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.slot_log_v1(p_shard int, p_key uuid, p_now bigint, p_count bigint)
RETURNS bigint[] LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (SELECT coalesce(array_agg(v.value ORDER BY s.expires_at, s.id, v.place), '{}')
            FROM (SELECT f.expires_at, f.cost, f.id FROM ration.slot AS f
                  WHERE f.shard = p_shard AND f.key = p_key AND f.expires_at > p_now ORDER BY f.expires_at LIMIT p_count) AS s
            CROSS JOIN LATERAL (VALUES (1, s.expires_at), (2, s.cost)) AS v (place, value));
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
          -- Versions of the same figures are crossed by earning on: only the last one's instant may be ahead of the clock.
          AND (v.version = p_to OR (v.n, v.d, v.capacity_units) <> (w.n, w.d, w.capacity_units))
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
-- Clock: none. Locks: none. SQLSTATE: none: the longest debt at the slowest rate, and a clock far behind, wait 2^63 - 1.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.wait_v1(p_units bigint, p_rate bigint, p_ahead bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_units > 0 THEN least(greatest(0, p_ahead), 9223372036854775806 - (p_units - 1) / p_rate) + (p_units - 1) / p_rate + 1
            ELSE 0 END;

-- ready_v1: whether a call may decide now: isolation level, life of the fast state, generation. False means that the call
-- was matched under another generation.
--
-- Arguments: p_fast says whether the call touches fast state; p_generation NULL fits every generation.
-- Units: none. Clock: none. Locks: none.
-- SQLSTATE: RN001 isolation level other than READ COMMITTED; RN002 the fast state was lost, call recover_v1.
CREATE OR REPLACE FUNCTION ration.ready_v1(p_fast boolean, p_generation bigint)
RETURNS boolean LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_generation bigint;
    v_alive      boolean;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = 'RN001', MESSAGE = 'a decision needs isolation level READ COMMITTED';
    END IF;
    SELECT s.generation, m.incarnation IS NOT NULL INTO v_generation, v_alive
    FROM ration.policy_set AS s LEFT JOIN ration.incarnation_marker AS m ON m.incarnation = s.incarnation;
    IF p_fast AND NOT v_alive THEN
        RAISE EXCEPTION USING ERRCODE = 'RN002', MESSAGE = 'the fast state was lost in a crash: call ration.recover_v1';
    END IF;
    RETURN v_generation = coalesce(p_generation, v_generation);
END $$;

-- guard_v1: what stands before every decision of take_v1 and take_new_v1: the shape of the arguments, then ready_v1.
--
-- Units: counts of callers, costs in tokens.
-- Clock: none. Locks: none.
-- SQLSTATE: RN001 RN002 from ready_v1; RN004 arrays of different length or not counted from 1, none or more than 1,024
--           elements, a cost below 1, a count below 0, NULL for any of them.
CREATE OR REPLACE FUNCTION ration.guard_v1(
    p_fast boolean, p_generation bigint, p_policies int[], p_keys uuid[], p_costs bigint[], p_counts int[])
RETURNS boolean LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_length constant int := cardinality(p_keys);
BEGIN
    -- NULL must never stand for nothing to pay: each condition has to be true, not merely not false.
    IF (p_generation IS NOT NULL AND v_length BETWEEN 1 AND 1024 AND array_upper(p_keys, 1) = v_length
        AND array_upper(p_policies, 1) = v_length AND cardinality(p_policies) = v_length
        AND array_upper(p_costs, 1) = v_length AND cardinality(p_costs) = v_length AND 1 <= ALL (p_costs)
        AND array_upper(p_counts, 1) = v_length AND cardinality(p_counts) = v_length AND 0 <= ALL (p_counts)
        AND array_position(p_policies, NULL) IS NULL AND array_position(p_keys, NULL) IS NULL) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004',
            MESSAGE = 'a call takes 1 to 1024 elements, as many policies, keys, costs >= 1 and counts >= 0';
    END IF;
    RETURN ration.ready_v1(p_fast, p_generation);
END $$;

-- advisory_key_v1: the number by which a key's or an operation's advisory lock is known: its first 64 bits.
-- Both paths stand before the same locks.
--
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.advisory_key_v1(p_key uuid)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ('x' || left(replace(p_key::text, '-', ''), 16))::bit(64)::bigint;

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

-- list_v1: whether an argument is a list of so many values: one dimension counted from 1, without NULL.
--
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.list_v1(p_values anyarray, p_length int)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT pg_catalog.cardinality(p_values) = p_length AND coalesce(pg_catalog.array_upper(p_values, 1), 0) = p_length
           AND coalesce(pg_catalog.array_ndims(p_values), 1) = 1
           AND pg_catalog.array_position(p_values, NULL) IS NULL
$$;

-- state_place_v1: which table keeps a policy's state, by its place in the lock order: 1 bucket_fast, 2 bucket_durable,
-- 3 window_fast, 4 window_durable, 5 log_fast, 6 log_durable, 7 slot_parent with slot, which are logged always.
--
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.state_place_v1(p_algorithm text, p_strict boolean, p_durability text)
RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_algorithm = 'concurrency' THEN 7
            ELSE CASE WHEN p_algorithm = 'token_bucket' THEN 1
                      WHEN p_algorithm = 'sliding_window_log' OR p_strict THEN 5
                      ELSE 3 END
                 + CASE WHEN p_durability = 'durable' THEN 1 ELSE 0 END END;

-- window_start_v1: the start of the window of an instant. Windows are aligned to the epoch, in UTC.
--
-- Units: microseconds. Clock: none, the instant is given. Locks: none. SQLSTATE: 22012 a window of no length.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.window_start_v1(p_at bigint, p_span bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN p_at - p_at % p_span;

-- window_at_v1: what a row of windows counts at an instant: moved on to the window of that instant, but never back.
--
-- Arguments: the newest window that the row has seen, what was charged in it and in the one before; the window's length.
-- Answers: the same of the window that counts at the instant.
-- Units: tokens, microseconds. Clock: none, the instant is given. Locks: none. SQLSTATE: none.
-- Note:  one query without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.window_at_v1(p_start bigint, p_current bigint, p_previous bigint, p_span bigint, p_now bigint)
RETURNS TABLE (start bigint, current bigint, previous bigint) LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 1
BEGIN ATOMIC
    SELECT greatest(p_start, w.due), CASE WHEN w.due <= p_start THEN p_current ELSE 0 END,
           CASE WHEN w.due <= p_start THEN p_previous WHEN w.due = p_start + p_span THEN p_current ELSE 0 END
    FROM (SELECT ration.window_start_v1(p_now, p_span) AS due) AS w;
END;

-- window_room_v1: what may still be charged in a window at an instant. The one home of the window rules, with
-- window_wait_v1: a fixed window counts what was charged in it; a sliding one adds what was charged in the window before,
-- by the share of it that a window ending now would still reach.
--
-- Arguments: what was charged in this window and in the one before, the microseconds elapsed in it, window, limit.
-- Answers: tokens; below zero when the limit was lowered or a settlement charged more.
-- Units: tokens, microseconds. Clock: none.
-- Locks: none. SQLSTATE: none: counts are at most twice the limit, and a sliding window's limit times its length is below 2^61.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.window_room_v1(
    p_sliding boolean, p_current bigint, p_previous bigint, p_elapsed bigint, p_span bigint, p_limit bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN p_limit - p_current
       - CASE WHEN p_sliding THEN (p_previous * (p_span - p_elapsed) + p_span - 1) / p_span ELSE 0 END;

-- window_wait_v1: how long after its start a window first has room for a cost that it has none for now, if nothing else is
-- charged: later in this window, in the next, where what is charged now weighs as what was charged before, or at the start
-- of the one after.
--
-- Arguments: as window_room_v1; p_cost at most the limit.
-- Units: tokens, microseconds from the window's start. Clock: none.
-- Locks: none. SQLSTATE: none, as window_room_v1.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.window_wait_v1(
    p_sliding boolean, p_current bigint, p_previous bigint, p_span bigint, p_limit bigint, p_cost bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN NOT p_sliding THEN p_span
            WHEN p_previous > 0 AND (p_limit - p_current - p_cost) * p_span >= p_previous
                THEN p_span - (p_limit - p_current - p_cost) * p_span / p_previous
            WHEN p_current > 0 THEN p_span + greatest(0, p_span - (p_limit - p_cost) * p_span / p_current)
            ELSE p_span END;

-- segment_v1: how long a segment of a strict sliding window counter is: a sixtieth of its window, rounded up, so that sixty
-- of them are never less than the window (policy.SegmentsPerWindow). NULL for every other limit.
--
-- Units: microseconds. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.segment_v1(p_policy ration.policy)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_policy.strict THEN (p_policy.span + 59) / 60 END;

-- log_charged_v1: a log with a charge more: behind its newest entry, or joined to it when that is of the same instant.
--
-- Arguments: pairs of instant and tokens, ascending by instant; p_at is not before the newest.
-- Units: tokens, microseconds. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.log_charged_v1(p_entries bigint[], p_at bigint, p_tokens bigint)
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    v_length constant int := cardinality(p_entries);
BEGIN
    IF v_length > 0 AND p_entries[v_length - 1] = p_at THEN
        p_entries[v_length] := p_entries[v_length] + p_tokens;
        RETURN p_entries;
    END IF;
    RETURN p_entries || ARRAY[p_at, p_tokens];
END $$;

-- log_live_v1: the part of a log that counts: the entries behind an instant, and what they add up to.
--
-- Arguments: pairs of instant and tokens, ascending by instant.
-- Units: tokens, microseconds. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.log_live_v1(p_entries bigint[], p_behind bigint, OUT o_live bigint[], OUT o_used bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    v_low  int := 0;  -- so many pairs are known not to count
    v_high int := cardinality(p_entries) / 2;
    v_half int;
BEGIN
    WHILE v_low < v_high LOOP
        v_half := (v_low + v_high) / 2;
        IF p_entries[2 * v_half + 1] > p_behind THEN
            v_high := v_half;
        ELSE
            v_low := v_half + 1;
        END IF;
    END LOOP;
    o_live := p_entries[2 * v_low + 1:];
    SELECT coalesce(sum(o_live[2 * i]), 0) INTO o_used FROM generate_series(1, cardinality(o_live) / 2) AS i;
END $$;

-- log_mark_v1: the instant at which an entry of a log stands: its own, or the end of its segment in a log that counts in
-- segments, so that the oldest segment counts whole.
--
-- Arguments: p_segment is the length of a segment, NULL where there are none.
-- Units: microseconds. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.log_mark_v1(p_at bigint, p_segment bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_segment IS NULL THEN p_at ELSE p_at - p_at % p_segment + p_segment END;

-- log_wait_v1: the instant of the entry that has to leave a log, the oldest first, before so many tokens are free.
--
-- Arguments: pairs of instant and tokens, ascending by instant; p_extra tokens more stand at p_extra_at; p_lack is at most
--        what all of them add up to.
-- Units: tokens, microseconds. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.log_wait_v1(p_entries bigint[], p_extra bigint, p_extra_at bigint, p_lack bigint)
RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    v_lack  bigint := p_lack;
    v_extra bigint := p_extra;
BEGIN
    FOR i IN 1 .. cardinality(p_entries) / 2 LOOP
        IF v_extra > 0 AND p_entries[2 * i - 1] > p_extra_at THEN
            v_lack := v_lack - v_extra;
            IF v_lack <= 0 THEN
                RETURN p_extra_at;
            END IF;
            v_extra := 0;
        END IF;
        v_lack := v_lack - p_entries[2 * i];
        IF v_lack <= 0 THEN
            RETURN p_entries[2 * i - 1];
        END IF;
    END LOOP;
    RETURN p_extra_at;
END $$;

-- idle_log_v1: the log of a key that spent nothing: empty, but where a loss of state left the policy's idle keys spent.
--
-- Units: microseconds, tokens. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.idle_log_v1(p_policy ration.policy)
RETURNS bigint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_policy.idle_balance < p_policy.capacity
            THEN ARRAY[ration.log_mark_v1(p_policy.idle_at, ration.segment_v1(p_policy)), p_policy.capacity - p_policy.idle_balance]
            ELSE '{}'::bigint[] END;

-- decide_guard_v1: the shape of decide_v1's arguments. What would cost a statement to find out is found out on the way: by
-- decide_v1 that p_claims ascends, by decide_write_v1 that no key occurs twice.
--
-- Units: tokens, microseconds. Clock: none. Locks: none.
-- SQLSTATE: RN004 anything else than 1 to 1,024 claims with at most 1,024 checks and keys, all operations distinct,
--           costs >= 1, stated costs and retention >= 0, a peek without operation, under `alone` one claim.
CREATE OR REPLACE FUNCTION ration.decide_guard_v1(
    p_generation bigint, p_operations uuid[], p_contents uuid[], p_stated bigint[], p_peeks boolean[], p_policies int[],
    p_keys uuid[], p_claims int[], p_cells int[], p_costs bigint[], p_priced boolean[], p_retention bigint, p_hold text)
RETURNS void LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    v_claims constant int := cardinality(p_stated);
    v_keys   constant int := cardinality(p_keys);
    v_checks constant int := cardinality(p_claims);
BEGIN
    -- NULL must never stand for nothing to pay: each condition has to be true, not merely not false.
    IF (p_generation IS NOT NULL AND p_retention >= 0 AND p_hold IN ('wait', 'skip', 'alone')
        AND v_claims BETWEEN 1 AND 1024 AND v_keys <= 1024 AND v_checks <= 1024 AND (v_claims = 1 OR p_hold <> 'alone')
        AND ration.list_v1(p_stated, v_claims) AND 0 <= ALL (p_stated) AND ration.list_v1(p_peeks, v_claims)
        AND cardinality(p_operations) = v_claims AND array_upper(p_operations, 1) = v_claims
        AND cardinality(p_contents) = v_claims AND array_upper(p_contents, 1) = v_claims
        AND ration.list_v1(p_keys, v_keys) AND ration.list_v1(p_policies, v_keys)
        AND ration.list_v1(p_claims, v_checks) AND ration.list_v1(p_cells, v_checks)
        AND ration.list_v1(p_costs, v_checks) AND 1 <= ALL (p_costs) AND ration.list_v1(p_priced, v_checks)
        AND (array_remove(p_operations, NULL) = '{}'
             OR NOT EXISTS (SELECT FROM unnest(p_operations, p_contents, p_peeks) AS c (operation, content, peek)
                            WHERE c.operation IS NOT NULL AND (c.content IS NULL OR c.peek))
                AND cardinality(array_remove(p_operations, NULL)) = (SELECT count(DISTINCT c.operation) FROM unnest(p_operations) AS c (operation)))
       ) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'these arrays are no claims: see the header of decide_guard_v1';
    END IF;
END $$;

-- decide_replay_v1: what decide_v1 finds under the operation ids of its claims: takes each id's advisory lock, if it is free,
-- so that nobody else decides it until this transaction ends, and then reads, by a new statement, what is stored.
--
-- A stored outcome is that of the same request if the content is the same, and the stated cost; one that states none is the
-- same as one that states what it would be charged.
--
-- Arguments: as decide_v1.
-- Answers: by claim, statuses of decide_v1 (0: not decided yet, or no operation id); by part, those of replayed claims.
-- Units: tokens, microseconds. Clock: none, the instant is given.
-- Locks: advisory locks on operation ids, tried and never waited for. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.decide_replay_v1(
    p_shard int, p_now bigint, p_operations uuid[], p_contents uuid[], p_stated bigint[], p_claims int[], p_costs bigint[],
    OUT o_status int[], OUT o_allowed boolean[], OUT o_at bigint[], OUT o_claim int[], OUT o_policy int[], OUT o_version int[],
    OUT o_admitted boolean[], OUT o_remaining bigint[], OUT o_retry_after bigint[], OUT o_reset_after bigint[],
    OUT o_slot uuid[], OUT o_slot_expires bigint[], OUT o_cost bigint[])
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET enable_memoize = off
AS $$
DECLARE
    v_free boolean[];
BEGIN
    SELECT array_agg(CASE WHEN c.operation IS NOT NULL
                          THEN pg_try_advisory_xact_lock(ration.advisory_key_v1(c.operation)) END ORDER BY c.claim)
    INTO v_free
    FROM unnest(p_operations) WITH ORDINALITY AS c (operation, claim);

    WITH found AS MATERIALIZED (
        SELECT c.claim::int, o.allowed, o.decided_at, o.parts,
               CASE WHEN c.operation IS NULL THEN 0
                    WHEN NOT v_free[c.claim] THEN 4
                    WHEN o.allowed IS NULL THEN 0
                    WHEN o.content = c.content AND (o.stated = c.stated OR (0 IN (o.stated, c.stated) AND o.price = coalesce(
                             (SELECT max(p_costs[i]) FROM generate_series(1, cardinality(p_claims)) AS i WHERE p_claims[i] = c.claim),
                             o.price))) THEN 2
                    ELSE 3 END AS status
        FROM unnest(p_operations, p_contents, p_stated) WITH ORDINALITY AS c (operation, content, stated, claim)
        LEFT JOIN LATERAL (SELECT f.* FROM ration.operation AS f
                           WHERE f.shard = p_shard AND f.key = c.operation AND v_free[c.claim] OFFSET 0) AS o ON true)
    SELECT c.status, c.allowed, c.at, p.*
    INTO o_status, o_allowed, o_at, o_claim, o_policy, o_version, o_admitted, o_remaining, o_retry_after, o_reset_after, o_slot,
         o_slot_expires, o_cost
    FROM (SELECT array_agg(f.status ORDER BY f.claim) AS status, array_agg(coalesce(f.allowed AND f.status = 2, false) ORDER BY f.claim) AS allowed,
                 array_agg(CASE WHEN f.status = 2 THEN f.decided_at ELSE p_now END ORDER BY f.claim) AS at
          FROM found AS f) AS c
    CROSS JOIN (SELECT array_agg(r.claim), array_agg(r.policy), array_agg(r.version), array_agg(r.admitted), array_agg(r.remaining),
                       array_agg(r.retry_after), array_agg(r.reset_after), array_agg(r.slot), array_agg(r.slot_expires_at),
                       array_agg(r.cost)
                FROM (SELECT f.claim, u.* FROM found AS f CROSS JOIN LATERAL unnest(f.parts) WITH ORDINALITY AS u
                      WHERE f.status = 2 ORDER BY f.claim, u.ordinality) AS r) AS p;
END $$;

-- decide_read_v1: what the keys of a decide_v1 call hold at an instant: each under the policy version in force, carried over
-- every change, with what has been earned or has expired by then. An absent row is an idle key.
--
-- Arguments: cells are the distinct keys of the call with their policies; p_needed says which of them to read.
-- Answers: one entry a cell, NULL where it is not needed or its policy is not of this generation.
--        o_places: where its state is kept (state_place_v1); o_writers: the transaction that wrote its row, NULL where there
--        is none; o_room: what may be charged, in parts of 1/d token; o_base: a bucket's balance in the same parts, else the
--        tokens that count; o_at: the instant of the balance, the start of the window, the newest entry or expiry;
--        o_previous: what the window before counts; o_marks: the instant under which a window or log keeps a charge of now,
--        the expiry of a slot of now; o_logs: the live entries of logs.
-- Units: tokens and parts of 1/d token, microseconds. Clock: none, the instant is given.
-- Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.decide_read_v1(
    p_shard int, p_generation bigint, p_policies int[], p_keys uuid[], p_needed boolean[], p_now bigint,
    OUT o_places int[], OUT o_writers xid[], OUT o_enforced boolean[], OUT o_versions int[], OUT o_capacities bigint[],
    OUT o_n bigint[], OUT o_d bigint[], OUT o_spans bigint[], OUT o_sliding boolean[], OUT o_room bigint[], OUT o_base bigint[],
    OUT o_at bigint[], OUT o_previous bigint[], OUT o_marks bigint[], OUT o_logs ration.log_entries[])
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET enable_memoize = off
AS $$
DECLARE
    r record;
BEGIN
    -- Token buckets are read with the policies; every other kind of state by a statement of its own, if it occurs: to begin
    -- one costs as much as to read a few keys.
    SELECT array_agg(p.place), array_agg(p.enforced), array_agg(p.version), array_agg(p.capacity), array_agg(p.n), array_agg(p.d),
           array_agg(p.span), array_agg(p.sliding), array_agg(s.writer), array_agg(b.settled), array_agg(b.at)
    INTO o_places, o_enforced, o_versions, o_capacities, o_n, o_d, o_spans, o_sliding, o_writers, o_room, o_at
    FROM (SELECT i AS cell FROM generate_series(1, cardinality(p_keys)) AS i ORDER BY 1) AS c
    LEFT JOIN LATERAL (
        SELECT f.number, f.version, f.capacity, f.capacity_units, f.n, f.d, f.span, f.idle_balance, f.idle_at,
               f.mode = 'enforce' AS enforced, f.algorithm = 'sliding_window_counter' AND NOT f.strict AS sliding,
               ration.state_place_v1(f.algorithm, f.strict, f.durability) AS place
        FROM ration.policy AS f
        WHERE f.number = p_policies[c.cell] AND f.generation <= p_generation AND p_needed[c.cell] OFFSET 0) AS p ON true
    -- Each branch is run for the cells of its place alone.
    LEFT JOIN LATERAL (
        SELECT f.xmin AS writer, f.version, f.balance, f.at FROM ration.bucket_fast AS f
        WHERE p.place = 1 AND f.shard = p_shard AND f.key = p_keys[c.cell]
        UNION ALL SELECT f.xmin, f.version, f.balance, f.at FROM ration.bucket_durable AS f
        WHERE p.place = 2 AND f.shard = p_shard AND f.key = p_keys[c.cell] OFFSET 0) AS s ON true
    LEFT JOIN LATERAL (
        SELECT v.at, ration.settled_v1(v.balance, v.at, p_now, p.n, p.capacity_units) AS settled
        FROM (SELECT coalesce(k.carried[1], s.balance, p.idle_balance) AS balance, coalesce(k.carried[2], s.at, p.idle_at) AS at
              -- Not called for rows of the version in force.
              FROM (SELECT CASE WHEN s.version < p.version THEN (
                               SELECT ARRAY[y.o_balance, y.o_at]
                               FROM ration.carry_v1(p.number, s.version, p.version, s.balance, s.at) AS y) END AS carried) AS k
              WHERE p.place <= 2 OFFSET 0) AS v) AS b ON true;
    o_base := o_room;
    o_previous := array_fill(NULL::bigint, ARRAY[cardinality(p_keys)]);
    o_marks := o_previous;
    IF o_places && ARRAY[3, 4] THEN
        FOR r IN
            SELECT c.cell, s.writer, w.start, w.current, w.previous,
                   ration.window_room_v1(o_sliding[c.cell], w.current, w.previous, greatest(0, p_now - w.start), p.span, p.capacity) AS room
            FROM (SELECT i AS cell, o_places[i] AS place FROM generate_series(1, cardinality(p_keys)) AS i
                  WHERE o_places[i] BETWEEN 3 AND 4) AS c
            CROSS JOIN LATERAL (SELECT f.* FROM ration.policy AS f WHERE f.number = p_policies[c.cell] OFFSET 0) AS p
            LEFT JOIN LATERAL (
                SELECT f.xmin AS writer, f.start, f.current, f.previous FROM ration.window_fast AS f
                WHERE c.place = 3 AND f.shard = p_shard AND f.key = p_keys[c.cell]
                UNION ALL SELECT f.xmin, f.start, f.current, f.previous FROM ration.window_durable AS f
                WHERE c.place = 4 AND f.shard = p_shard AND f.key = p_keys[c.cell] OFFSET 0) AS s ON true
            CROSS JOIN LATERAL ration.window_at_v1(coalesce(s.start, ration.window_start_v1(p.idle_at, p.span)),
                                                   coalesce(s.current, p.capacity - p.idle_balance), coalesce(s.previous, 0),
                                                   p.span, p_now) AS w
        LOOP
            o_writers[r.cell] := r.writer;
            o_room[r.cell] := r.room;
            o_base[r.cell] := r.current;
            o_at[r.cell] := r.start;
            o_previous[r.cell] := r.previous;
            o_marks[r.cell] := r.start;
        END LOOP;
    END IF;
    IF o_places && ARRAY[5, 6] THEN
        o_logs := array_fill(NULL::ration.log_entries, ARRAY[cardinality(p_keys)]);
        FOR r IN
            SELECT c.cell, s.writer, p.capacity - l.o_used AS room, l.o_used AS used, newest.at,
                   -- A charge stands at its instant, a segment's at the segment's end; but not before the newest.
                   greatest(ration.log_mark_v1(p_now, ration.segment_v1(p.policy)), newest.at) AS mark,
                   ROW (l.o_live)::ration.log_entries AS log
            FROM (SELECT i AS cell, o_places[i] AS place FROM generate_series(1, cardinality(p_keys)) AS i
                  WHERE o_places[i] BETWEEN 5 AND 6) AS c
            CROSS JOIN LATERAL (SELECT f AS policy, f.capacity, f.span FROM ration.policy AS f
                                WHERE f.number = p_policies[c.cell] OFFSET 0) AS p
            LEFT JOIN LATERAL (
                SELECT f.xmin AS writer, f.entries FROM ration.log_fast AS f
                WHERE c.place = 5 AND f.shard = p_shard AND f.key = p_keys[c.cell]
                UNION ALL SELECT f.xmin, f.entries FROM ration.log_durable AS f
                WHERE c.place = 6 AND f.shard = p_shard AND f.key = p_keys[c.cell] OFFSET 0) AS s ON true
            CROSS JOIN LATERAL ration.log_live_v1(coalesce(s.entries, ration.idle_log_v1(p.policy)), p_now - p.span) AS l
            CROSS JOIN LATERAL (SELECT l.o_live[cardinality(l.o_live) - 1] AS at) AS newest
        LOOP
            o_writers[r.cell] := r.writer;
            o_room[r.cell] := r.room;
            o_base[r.cell] := r.used;
            o_at[r.cell] := r.at;
            o_marks[r.cell] := r.mark;
            o_logs[r.cell] := r.log;
        END LOOP;
    END IF;
    IF 7 = ANY (o_places) THEN
        FOR r IN
            SELECT c.cell, o.xmin AS writer, u.used, u.last
            FROM (SELECT i AS cell FROM generate_series(1, cardinality(p_keys)) AS i WHERE o_places[i] = 7) AS c
            LEFT JOIN LATERAL (SELECT f.xmin FROM ration.slot_parent AS f WHERE f.shard = p_shard AND f.key = p_keys[c.cell] OFFSET 0) AS o
                ON true
            CROSS JOIN LATERAL (SELECT coalesce(sum(f.cost), 0) AS used, max(f.expires_at) AS last FROM ration.slot AS f
                                WHERE f.shard = p_shard AND f.key = p_keys[c.cell] AND f.expires_at > p_now) AS u
        LOOP
            o_writers[r.cell] := r.writer;
            o_room[r.cell] := o_capacities[r.cell] - r.used;
            o_base[r.cell] := r.used;
            o_at[r.cell] := r.last;
            o_marks[r.cell] := p_now + o_spans[r.cell];
        END LOOP;
    END IF;
END $$;

-- decide_figures_v1: what decide_v1 tells of one check: what is left of its key, how long the same cost has to wait, and when
-- nothing is spent any more.
--
-- Arguments: figures of the key as decide_read_v1 gives them; p_taken is what the call has charged to it up to and with
--        this check. p_cost is what does not fit and has to wait, at most the capacity; NULL where nothing waits.
-- Units: tokens, microseconds from p_now. Clock: none, the instant is given.
-- Locks: none. SQLSTATE: none.
-- Note:  one query without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.decide_figures_v1(
    p_now bigint, p_place int, p_cost bigint, p_capacity bigint, p_taken bigint, p_n bigint, p_d bigint, p_span bigint,
    p_sliding boolean, p_base bigint, p_at bigint, p_previous bigint, p_mark bigint, p_log ration.log_entries)
RETURNS TABLE (remaining bigint, retry_after bigint, reset_after bigint)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT CASE WHEN p_place <= 2 THEN (p_base - p_taken * p_d) / p_d
                WHEN p_place <= 4 THEN ration.window_room_v1(p_sliding, p_base + p_taken, p_previous, greatest(0, p_now - p_at), p_span,
                                                             p_capacity)
                ELSE p_capacity - p_base - p_taken END,
           CASE WHEN p_cost IS NULL THEN NULL
                WHEN p_place <= 2 THEN ration.wait_v1(p_cost * p_d - (p_base - p_taken * p_d), p_n, p_at - p_now)
                WHEN p_place <= 4 THEN p_at - p_now + ration.window_wait_v1(p_sliding, p_base + p_taken, p_previous, p_span, p_capacity,
                                                                            p_cost)
                ELSE ration.log_wait_v1((p_log).entries, p_taken, p_mark, p_base + p_taken + p_cost - p_capacity)
                     + CASE WHEN p_place = 7 THEN 0 ELSE p_span END - p_now END,  -- a slot counts until its expiry, an entry for the window behind it
           CASE WHEN p_place <= 2 THEN ration.wait_v1(p_capacity * p_d - (p_base - p_taken * p_d), p_n, p_at - p_now)
                WHEN p_place <= 4 THEN CASE WHEN p_base + p_taken > 0 THEN p_at - p_now + CASE WHEN p_sliding THEN 2 ELSE 1 END * p_span
                                            WHEN p_sliding AND p_previous > 0 THEN p_at - p_now + p_span
                                            ELSE 0 END
                WHEN p_base + p_taken = 0 THEN 0
                ELSE greatest(p_at, CASE WHEN p_taken > 0 THEN p_mark END) + CASE WHEN p_place = 7 THEN 0 ELSE p_span END - p_now END;
END;

-- decide_lock_v1: locks the rows of a decide_v1 call. Absent ones are inserted first, as idle keys; then all are locked in
-- one ascending pass. Inserting before locking, each in the one order of places and keys, is what keeps calls that meet in
-- several rows from waiting for each other in a circle.
--
-- Arguments: cells are the distinct keys of the call; p_wanted says which to lock; p_places and p_writers are as
--        decide_read_v1 found them a moment ago. p_hold as in decide_v1.
-- Answers: o_cells: those whose rows are locked, and o_rows, where these are. One that is missing is held by another session ('skip'), absent ('skip'),
--        was deleted meanwhile, or all are, when another call waits for one of the keys ('alone'). o_same: all are locked,
--        and hold what decide_read_v1 found there. Of slots that is not known: they change without their parent's row.
-- Units: none. Clock: none.
-- Locks: 'alone': the transaction's advisory locks on the first 64 bits of the keys, if all are free; then the rows, by place
--        and key.
-- SQLSTATE: 57014 statement_timeout.
CREATE OR REPLACE FUNCTION ration.decide_lock_v1(
    p_shard int, p_hold text, p_wanted boolean[], p_places int[], p_policies int[], p_keys uuid[], p_writers xid[],
    OUT o_cells int[], OUT o_rows tid[], OUT o_same boolean)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET enable_memoize = off
AS $$
DECLARE
    v_cells    int[];    -- wanted, ascending by place and key
    v_places   int[];    -- of these
    v_absent   int[];    -- places of those without a row
    v_inserted int := 0;
    v_rows     int;
    r          record;
BEGIN
    SELECT array_agg(q.cell), array_agg(q.place), array_agg(q.place) FILTER (WHERE q.writer IS NULL)
    INTO v_cells, v_places, v_absent
    FROM (SELECT i AS cell, p_places[i] AS place, p_writers[i] AS writer FROM generate_series(1, cardinality(p_keys)) AS i
          WHERE p_wanted[i] ORDER BY 2, p_keys[i]) AS q;
    o_same := p_hold <> 'skip' AND NOT 7 = ANY (v_places);
    IF p_hold = 'skip' THEN
        SELECT array_agg(q.cell), array_agg(coalesce(l1.got, l2.got, l3.got, l4.got, l5.got, l6.got, l7.got)) INTO o_cells, o_rows
        FROM (SELECT u.cell, p_places[u.cell] AS place, p_keys[u.cell] AS key FROM unnest(v_cells) WITH ORDINALITY AS u (cell, n)
              ORDER BY u.n) AS q
        LEFT JOIN LATERAL (SELECT t.ctid AS got FROM ration.bucket_fast AS t
                           WHERE q.place = 1 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l1 ON true
        LEFT JOIN LATERAL (SELECT t.ctid AS got FROM ration.bucket_durable AS t
                           WHERE q.place = 2 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l2 ON true
        LEFT JOIN LATERAL (SELECT t.ctid AS got FROM ration.window_fast AS t
                           WHERE q.place = 3 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l3 ON true
        LEFT JOIN LATERAL (SELECT t.ctid AS got FROM ration.window_durable AS t
                           WHERE q.place = 4 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l4 ON true
        LEFT JOIN LATERAL (SELECT t.ctid AS got FROM ration.log_fast AS t
                           WHERE q.place = 5 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l5 ON true
        LEFT JOIN LATERAL (SELECT t.ctid AS got FROM ration.log_durable AS t
                           WHERE q.place = 6 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l6 ON true
        LEFT JOIN LATERAL (SELECT t.ctid AS got FROM ration.slot_parent AS t
                           WHERE q.place = 7 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l7 ON true
        WHERE coalesce(l1.got, l2.got, l3.got, l4.got, l5.got, l6.got, l7.got) IS NOT NULL;
        RETURN;
    END IF;
    IF p_hold = 'alone' AND NOT (SELECT bool_and(pg_try_advisory_xact_lock(ration.advisory_key_v1(p_keys[u.cell])))
                                 FROM unnest(v_cells) AS u (cell)) THEN
        o_same := false;
        RETURN;
    END IF;

    IF 1 = ANY (v_absent) THEN
        INSERT INTO ration.bucket_fast (balance, at, key, shard, policy, version, took)
        SELECT p.idle_balance, p.idle_at, p_keys[u.cell], p_shard, p.number, p.version, 0
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 1 AND p_writers[u.cell] IS NULL ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 2 = ANY (v_absent) THEN
        INSERT INTO ration.bucket_durable (balance, at, key, shard, policy, version, took)
        SELECT p.idle_balance, p.idle_at, p_keys[u.cell], p_shard, p.number, p.version, 0
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 2 AND p_writers[u.cell] IS NULL ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 3 = ANY (v_absent) THEN
        INSERT INTO ration.window_fast (start, current, previous, key, shard, policy, version)
        SELECT ration.window_start_v1(p.idle_at, p.span), p.capacity - p.idle_balance, 0, p_keys[u.cell], p_shard, p.number, p.version
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 3 AND p_writers[u.cell] IS NULL ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 4 = ANY (v_absent) THEN
        INSERT INTO ration.window_durable (start, current, previous, key, shard, policy, version)
        SELECT ration.window_start_v1(p.idle_at, p.span), p.capacity - p.idle_balance, 0, p_keys[u.cell], p_shard, p.number, p.version
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 4 AND p_writers[u.cell] IS NULL ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 5 = ANY (v_absent) THEN
        INSERT INTO ration.log_fast (key, shard, policy, version, entries)
        SELECT p_keys[u.cell], p_shard, p.number, p.version, ration.idle_log_v1(p)
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 5 AND p_writers[u.cell] IS NULL ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 6 = ANY (v_absent) THEN
        INSERT INTO ration.log_durable (key, shard, policy, version, entries)
        SELECT p_keys[u.cell], p_shard, p.number, p.version, ration.idle_log_v1(p)
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 6 AND p_writers[u.cell] IS NULL ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 7 = ANY (v_absent) THEN
        INSERT INTO ration.slot_parent (key, shard, policy)
        SELECT p_keys[u.cell], p_shard, p.number
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 7 AND p_writers[u.cell] IS NULL ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;

    -- A subquery with a lock of its own cannot be flattened: the sorted cells drive it, so rows are locked ascending.
    IF 1 = ANY (v_places) THEN
        SELECT array_agg(q.cell) AS cells, array_agg(held.ctid) AS rows, bool_and((held.xmin = p_writers[q.cell]) IS NOT FALSE) AS same INTO r
        FROM (SELECT u.cell, p_keys[u.cell] AS key FROM unnest(v_cells) AS u (cell) WHERE p_places[u.cell] = 1 ORDER BY 2) AS q
        CROSS JOIN LATERAL (SELECT t.ctid, t.xmin FROM ration.bucket_fast AS t
                            WHERE t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS held;
        o_cells := o_cells || r.cells;
        o_rows := o_rows || r.rows;
        o_same := o_same AND r.same;
    END IF;
    IF 2 = ANY (v_places) THEN
        SELECT array_agg(q.cell) AS cells, array_agg(held.ctid) AS rows, bool_and((held.xmin = p_writers[q.cell]) IS NOT FALSE) AS same INTO r
        FROM (SELECT u.cell, p_keys[u.cell] AS key FROM unnest(v_cells) AS u (cell) WHERE p_places[u.cell] = 2 ORDER BY 2) AS q
        CROSS JOIN LATERAL (SELECT t.ctid, t.xmin FROM ration.bucket_durable AS t
                            WHERE t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS held;
        o_cells := o_cells || r.cells;
        o_rows := o_rows || r.rows;
        o_same := o_same AND r.same;
    END IF;
    IF 3 = ANY (v_places) THEN
        SELECT array_agg(q.cell) AS cells, array_agg(held.ctid) AS rows, bool_and((held.xmin = p_writers[q.cell]) IS NOT FALSE) AS same INTO r
        FROM (SELECT u.cell, p_keys[u.cell] AS key FROM unnest(v_cells) AS u (cell) WHERE p_places[u.cell] = 3 ORDER BY 2) AS q
        CROSS JOIN LATERAL (SELECT t.ctid, t.xmin FROM ration.window_fast AS t
                            WHERE t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS held;
        o_cells := o_cells || r.cells;
        o_rows := o_rows || r.rows;
        o_same := o_same AND r.same;
    END IF;
    IF 4 = ANY (v_places) THEN
        SELECT array_agg(q.cell) AS cells, array_agg(held.ctid) AS rows, bool_and((held.xmin = p_writers[q.cell]) IS NOT FALSE) AS same INTO r
        FROM (SELECT u.cell, p_keys[u.cell] AS key FROM unnest(v_cells) AS u (cell) WHERE p_places[u.cell] = 4 ORDER BY 2) AS q
        CROSS JOIN LATERAL (SELECT t.ctid, t.xmin FROM ration.window_durable AS t
                            WHERE t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS held;
        o_cells := o_cells || r.cells;
        o_rows := o_rows || r.rows;
        o_same := o_same AND r.same;
    END IF;
    IF 5 = ANY (v_places) THEN
        SELECT array_agg(q.cell) AS cells, array_agg(held.ctid) AS rows, bool_and((held.xmin = p_writers[q.cell]) IS NOT FALSE) AS same INTO r
        FROM (SELECT u.cell, p_keys[u.cell] AS key FROM unnest(v_cells) AS u (cell) WHERE p_places[u.cell] = 5 ORDER BY 2) AS q
        CROSS JOIN LATERAL (SELECT t.ctid, t.xmin FROM ration.log_fast AS t
                            WHERE t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS held;
        o_cells := o_cells || r.cells;
        o_rows := o_rows || r.rows;
        o_same := o_same AND r.same;
    END IF;
    IF 6 = ANY (v_places) THEN
        SELECT array_agg(q.cell) AS cells, array_agg(held.ctid) AS rows, bool_and((held.xmin = p_writers[q.cell]) IS NOT FALSE) AS same INTO r
        FROM (SELECT u.cell, p_keys[u.cell] AS key FROM unnest(v_cells) AS u (cell) WHERE p_places[u.cell] = 6 ORDER BY 2) AS q
        CROSS JOIN LATERAL (SELECT t.ctid, t.xmin FROM ration.log_durable AS t
                            WHERE t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS held;
        o_cells := o_cells || r.cells;
        o_rows := o_rows || r.rows;
        o_same := o_same AND r.same;
    END IF;
    IF 7 = ANY (v_places) THEN
        SELECT array_agg(q.cell) AS cells, array_agg(held.ctid) AS rows, bool_and((held.xmin = p_writers[q.cell]) IS NOT FALSE) AS same INTO r
        FROM (SELECT u.cell, p_keys[u.cell] AS key FROM unnest(v_cells) AS u (cell) WHERE p_places[u.cell] = 7 ORDER BY 2) AS q
        CROSS JOIN LATERAL (SELECT t.ctid, t.xmin FROM ration.slot_parent AS t
                            WHERE t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS held;
        o_cells := o_cells || r.cells;
        o_rows := o_rows || r.rows;
        o_same := o_same AND r.same;
    END IF;
    -- Whose rows were inserted by others meanwhile were not seen before.
    o_same := (o_same AND cardinality(o_cells) = cardinality(v_cells) AND v_inserted = coalesce(cardinality(v_absent), 0)) IS TRUE;
END $$;

-- decide_write_v1: writes what a decide_v1 call charged: each changed row once.
--
-- Arguments: p_cells and p_rows are the locked rows (decide_lock_v1); by cell, figures as decide_read_v1 gives them; p_left is
--        what is left of p_room when all is charged. Slots are inserted by decide_v1.
-- Units: tokens and parts of 1/d token, microseconds. Clock: none, the instant is given.
-- Locks: the caller has locked the rows.
-- SQLSTATE: RN004 a key of the call occurs twice, or more was charged than there was room for: a claim asks a key twice.
CREATE OR REPLACE FUNCTION ration.decide_write_v1(
    p_now bigint, p_cells int[], p_rows tid[], p_places int[], p_versions int[], p_room bigint[], p_left bigint[], p_base bigint[],
    p_at bigint[], p_previous bigint[], p_marks bigint[], p_logs ration.log_entries[])
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET enable_memoize = off
AS $$
DECLARE
    v_charged int;
    v_over    boolean;
    v_rows    int;
    v_wrote   int := 0;
BEGIN
    SELECT count(*) FILTER (WHERE p_places[u.cell] < 7), bool_or(p_left[u.cell] < 0) INTO v_charged, v_over
    FROM generate_series(1, cardinality(p_left)) AS u (cell) WHERE p_left[u.cell] < p_room[u.cell];
    IF 1 = ANY (p_places) THEN
        UPDATE ration.bucket_fast AS t
        SET balance = p_base[q.cell] - (p_room[q.cell] - p_left[q.cell]), at = greatest(p_at[q.cell], p_now),
            version = p_versions[q.cell], took = 1
        FROM (SELECT u.cell, u.at FROM unnest(p_cells, p_rows) AS u (cell, at)
              WHERE p_places[u.cell] = 1 AND p_left[u.cell] < p_room[u.cell] OFFSET 0) AS q
        WHERE t.ctid = q.at;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_wrote := v_wrote + v_rows;
    END IF;
    IF 2 = ANY (p_places) THEN
        UPDATE ration.bucket_durable AS t
        SET balance = p_base[q.cell] - (p_room[q.cell] - p_left[q.cell]), at = greatest(p_at[q.cell], p_now),
            version = p_versions[q.cell], took = 1
        FROM (SELECT u.cell, u.at FROM unnest(p_cells, p_rows) AS u (cell, at)
              WHERE p_places[u.cell] = 2 AND p_left[u.cell] < p_room[u.cell] OFFSET 0) AS q
        WHERE t.ctid = q.at;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_wrote := v_wrote + v_rows;
    END IF;
    IF 3 = ANY (p_places) THEN
        UPDATE ration.window_fast AS t
        SET start = p_at[q.cell], current = p_base[q.cell] + p_room[q.cell] - p_left[q.cell], previous = p_previous[q.cell],
            version = p_versions[q.cell]
        FROM (SELECT u.cell, u.at FROM unnest(p_cells, p_rows) AS u (cell, at)
              WHERE p_places[u.cell] = 3 AND p_left[u.cell] < p_room[u.cell] OFFSET 0) AS q
        WHERE t.ctid = q.at;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_wrote := v_wrote + v_rows;
    END IF;
    IF 4 = ANY (p_places) THEN
        UPDATE ration.window_durable AS t
        SET start = p_at[q.cell], current = p_base[q.cell] + p_room[q.cell] - p_left[q.cell], previous = p_previous[q.cell],
            version = p_versions[q.cell]
        FROM (SELECT u.cell, u.at FROM unnest(p_cells, p_rows) AS u (cell, at)
              WHERE p_places[u.cell] = 4 AND p_left[u.cell] < p_room[u.cell] OFFSET 0) AS q
        WHERE t.ctid = q.at;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_wrote := v_wrote + v_rows;
    END IF;
    IF 5 = ANY (p_places) THEN
        UPDATE ration.log_fast AS t
        SET entries = ration.log_charged_v1((p_logs[q.cell]).entries, p_marks[q.cell], p_room[q.cell] - p_left[q.cell]),
            version = p_versions[q.cell]
        FROM (SELECT u.cell, u.at FROM unnest(p_cells, p_rows) AS u (cell, at)
              WHERE p_places[u.cell] = 5 AND p_left[u.cell] < p_room[u.cell] OFFSET 0) AS q
        WHERE t.ctid = q.at;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_wrote := v_wrote + v_rows;
    END IF;
    IF 6 = ANY (p_places) THEN
        UPDATE ration.log_durable AS t
        SET entries = ration.log_charged_v1((p_logs[q.cell]).entries, p_marks[q.cell], p_room[q.cell] - p_left[q.cell]),
            version = p_versions[q.cell]
        FROM (SELECT u.cell, u.at FROM unnest(p_cells, p_rows) AS u (cell, at)
              WHERE p_places[u.cell] = 6 AND p_left[u.cell] < p_room[u.cell] OFFSET 0) AS q
        WHERE t.ctid = q.at;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_wrote := v_wrote + v_rows;
    END IF;
    -- Whatever was charged is written, or nothing was.
    IF v_over OR v_wrote <> v_charged THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a key occurs twice';
    END IF;
END $$;

-- decide_v1: the general path: decides claims, each on any number of policies of any algorithm, all or nothing, in the order
-- in which they stand; with operation ids, which replay what was decided before, and slots.
--
-- A first look reads every key without locks and decides everything. That stands for claims which an enforced policy denies
-- and for peeks, unless a claim before them charges one of their keys: they write nothing. What is left has its rows locked.
-- If these still hold what the first look saw, its decisions stand too; else they are read anew, by a new statement, since
-- one that waited for a lock still sees the other tables as they were, and decided again.
--
-- Arguments, by claim: p_operations names its operation id, NULL where it has none; p_contents the fingerprint of its
--        request, p_stated its stated cost, 0 for none; p_peeks whether it only asks.
--        By key: p_policies and p_keys, each key once.
--        By check: p_claims the claim (from 1, ascending), p_cells which of p_keys is its key (from 1), p_costs what it asks,
--        p_priced whether that is the request's own cost, which a settlement replaces. A claim without checks has an
--        operation id, and is only looked up.
--        p_retention: how long outcomes of operation ids are kept at least. p_hold: what to do about rows that others hold:
--        'wait' waits for them, until statement_timeout; 'skip' leaves them out and inserts nothing (an uncommitted insert of
--        another session cannot be skipped); 'alone', with one claim, waits, but only if no other call waits so for its keys.
-- Answers: o_stale, true when the policy set in force is not that of p_generation: then nothing was decided. Else by claim
--        o_status: 0 again (a row was deleted meanwhile, or left out by the hold, or the policy changed), 1 decided,
--        2 replayed, 3 the operation id belongs to another request, 4 another call decides the same operation id at this
--        moment, 5 another session holds a row of it, 6 no checks and nothing stored; nothing was charged but under 1.
--        o_allowed, and o_at, the instant of the decision. By part, in the order of claims and checks: o_claim, o_policy,
--        o_version, o_admitted (this policy alone allows it), o_remaining, o_retry_after (0 when admitted, -1 never),
--        o_reset_after, o_slot and o_slot_expires, o_cost (what was charged, 0 for nothing).
-- Units: tokens, microseconds; waits are counted from o_at.
-- Clock: clock_timestamp() before the first look, and again behind the locks where rows changed meanwhile; p_now on a test
--        clock.
-- Locks: advisory locks on operation ids, tried and never waited for; then the rows of claims that may be allowed, by
--        decide_lock_v1.
-- SQLSTATE: RN001 RN002 from ready_v1, RN003 from clock_v1, RN004 from decide_guard_v1, and where p_claims does not ascend;
--           57014 statement_timeout, with nothing charged.
CREATE OR REPLACE FUNCTION ration.decide_v1(
    p_shard int, p_generation bigint, p_operations uuid[], p_contents uuid[], p_stated bigint[], p_peeks boolean[],
    p_policies int[], p_keys uuid[], p_claims int[], p_cells int[], p_costs bigint[], p_priced boolean[],
    p_retention bigint, p_hold text DEFAULT 'wait', p_now bigint DEFAULT NULL,
    OUT o_stale boolean, OUT o_now bigint, OUT o_status int[], OUT o_allowed boolean[], OUT o_at bigint[],
    OUT o_claim int[], OUT o_policy int[], OUT o_version int[], OUT o_admitted boolean[], OUT o_remaining bigint[],
    OUT o_retry_after bigint[], OUT o_reset_after bigint[], OUT o_slot uuid[], OUT o_slot_expires bigint[],
    OUT o_cost bigint[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Pinned plans, as in take_v1; and remembering what was looked up in a nested loop costs a small call more than it saves.
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET enable_memoize = off
AS $$
DECLARE
    v_operating boolean;  -- some claim has an operation id
    v_claims    constant int     := coalesce(cardinality(p_stated), 0);
    v_keys      constant int     := coalesce(cardinality(p_keys), 0);
    v_checks    constant int     := coalesce(cardinality(p_claims), 0);
    v_locked    boolean := false;  -- this look is the second one, under the locks
    v_stands    boolean;           -- what was decided stands
    s           record;            -- the keys, as decide_read_v1 gives them
    l           record;            -- the rows, as decide_lock_v1 leaves them
    v_needed    boolean[] := array_fill(true, ARRAY[v_keys]);         -- by key: this look reads it
    v_wanted    boolean[];                                            -- by key: a claim is about to charge it
    v_rows      boolean[] := array_fill(false, ARRAY[v_keys]);        -- by key: its row is locked
    v_room      bigint[];                                             -- by key: what may still be charged, in parts
    v_left      bigint[]  := array_fill(0::bigint, ARRAY[v_checks]);  -- by check: v_room before it
    v_fits      boolean[] := array_fill(false, ARRAY[v_checks]);      -- by check: its policy alone allows it
    v_pays      boolean[];  -- by claim: it is charged
    v_pends     boolean[];  -- by claim: what was decided stands only if its rows are locked and hold what was seen
    v_tells     boolean[];  -- by claim: this look decides it for good
    v_of        int[];      -- by part: its check, 0 when it is replayed
    v_tellings  int := 0;   -- how often parts were told: replays, then by each look
    v_first     int;        -- check of the claim in hand
    v_check     int;
    v_cell      int;
    v_ok        boolean;    -- no enforced policy denies the claim in hand
    v_waits     boolean;    -- it has a key that a claim before it charges
    v_open      boolean;    -- it has a key that cannot be decided
    v_held      boolean;    -- and that is because others hold its row
BEGIN
    PERFORM ration.decide_guard_v1(p_generation, p_operations, p_contents, p_stated, p_peeks, p_policies, p_keys, p_claims,
                                   p_cells, p_costs, p_priced, p_retention, p_hold);
    v_operating := array_remove(p_operations, NULL) <> '{}';
    o_now := ration.clock_v1(p_now);
    s := ration.decide_read_v1(p_shard, p_generation, p_policies, p_keys, v_needed, o_now);
    o_stale := NOT ration.ready_v1(s.o_places && ARRAY[1, 3, 5] /* the fast ones */, p_generation);
    IF o_stale THEN
        RETURN;
    END IF;
    o_status := array_fill(0, ARRAY[v_claims]);
    o_allowed := array_fill(false, ARRAY[v_claims]);
    o_at := array_fill(o_now, ARRAY[v_claims]);
    IF v_operating THEN
        SELECT r.o_status, r.o_allowed, r.o_at, r.o_claim, r.o_policy, r.o_version, r.o_admitted, r.o_remaining, r.o_retry_after,
               r.o_reset_after, r.o_slot, r.o_slot_expires, r.o_cost
        INTO o_status, o_allowed, o_at, o_claim, o_policy, o_version, o_admitted, o_remaining, o_retry_after, o_reset_after, o_slot,
             o_slot_expires, o_cost
        FROM ration.decide_replay_v1(p_shard, o_now, p_operations, p_contents, p_stated, p_claims, p_costs) AS r;
        v_of := array_fill(0, ARRAY[coalesce(cardinality(o_claim), 0)]);
        v_tellings := least(1, cardinality(v_of));
    END IF;

    LOOP
        v_room := s.o_room;
        v_wanted := array_fill(false, ARRAY[v_keys]);
        v_pays := array_fill(false, ARRAY[v_claims]);
        v_pends := v_pays;
        v_tells := v_pays;
        v_check := 1;
        FOR v_claim IN 1 .. v_claims LOOP
            v_first := v_check;
            IF o_status[v_claim] <> 0 THEN
                WHILE v_check <= v_checks AND p_claims[v_check] = v_claim LOOP
                    v_check := v_check + 1;
                END LOOP;
                CONTINUE;
            END IF;
            v_ok := true;
            v_waits := false;
            v_open := false;
            v_held := false;
            WHILE v_check <= v_checks AND p_claims[v_check] = v_claim LOOP
                v_cell := p_cells[v_check];
                v_left[v_check] := v_room[v_cell];
                v_fits[v_check] := CASE WHEN p_costs[v_check] <= s.o_capacities[v_cell]
                                        THEN v_room[v_cell] >= p_costs[v_check] * s.o_d[v_cell] ELSE false END;
                -- The usual check is through here with one look.
                IF (v_fits[v_check] AND NOT v_wanted[v_cell] AND (v_rows[v_cell] OR NOT v_locked)) IS NOT TRUE THEN
                    v_ok := v_ok AND (v_fits[v_check] OR NOT s.o_enforced[v_cell]);
                    v_waits := v_waits OR v_wanted[v_cell];
                    IF s.o_places[v_cell] IS NULL OR (v_locked AND NOT v_rows[v_cell] AND NOT p_peeks[v_claim]) THEN
                        v_open := true;
                        v_held := v_held OR (p_hold = 'skip' AND s.o_writers[v_cell] IS NOT NULL);
                    END IF;
                END IF;
                v_check := v_check + 1;
            END LOOP;
            IF v_first = v_check THEN
                o_status[v_claim] := 6;
                CONTINUE;
            ELSIF v_open THEN
                IF v_held THEN
                    o_status[v_claim] := 5;
                END IF;
                CONTINUE;
            END IF;
            o_status[v_claim] := 1;
            o_allowed[v_claim] := v_ok;
            o_at[v_claim] := o_now;
            v_pays[v_claim] := v_ok AND NOT p_peeks[v_claim];
            v_pends[v_claim] := (v_waits OR v_pays[v_claim]) AND NOT v_locked;
            v_tells[v_claim] := NOT v_pends[v_claim];
            CONTINUE WHEN p_peeks[v_claim] OR NOT (v_pends[v_claim] OR v_pays[v_claim]);
            FOR i IN v_first .. v_check - 1 LOOP
                v_cell := p_cells[i];
                v_wanted[v_cell] := NOT v_locked;
                IF v_pays[v_claim] AND v_fits[i] THEN
                    v_room[v_cell] := v_room[v_cell] - p_costs[i] * s.o_d[v_cell];
                END IF;
            END LOOP;
        END LOOP;
        IF v_check <= v_checks THEN
            RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'the claims of the checks do not ascend from 1 to the number of claims';
        END IF;

        v_stands := true;
        IF true = ANY (v_pends) THEN
            l := ration.decide_lock_v1(p_shard, p_hold, v_wanted, s.o_places, p_policies, p_keys, s.o_writers);
            v_stands := l.o_same;
            v_locked := true;
        END IF;
        IF v_stands AND v_locked THEN
            FOR i IN 1 .. v_claims LOOP
                v_tells[i] := v_tells[i] OR v_pends[i];
            END LOOP;
        END IF;
        IF true = ANY (v_tells) THEN
            v_tellings := v_tellings + 1;
            SELECT v_of || array_agg(k.i), o_claim || array_agg(k.claim), o_policy || array_agg(p_policies[k.cell]),
                   o_version || array_agg(s.o_versions[k.cell]), o_admitted || array_agg(k.fits),
                   o_remaining || array_agg(greatest(0, f.remaining)),
                   o_retry_after || array_agg(CASE WHEN k.fits THEN 0 WHEN k.cost > k.capacity THEN -1
                                                   ELSE greatest(1, f.retry_after) END),
                   o_reset_after || array_agg(f.reset_after),
                   o_slot || array_agg(CASE WHEN k.charged > 0 AND k.place = 7 THEN gen_random_uuid() END),
                   o_slot_expires || array_agg(CASE WHEN k.charged > 0 AND k.place = 7 THEN k.mark END),
                   o_cost || array_agg(k.charged)
            INTO v_of, o_claim, o_policy, o_version, o_admitted, o_remaining, o_retry_after, o_reset_after, o_slot, o_slot_expires,
                 o_cost
            -- Each subscript once: the planner puts the function's arguments wherever it uses them.
            FROM (SELECT c.*, p_costs[c.i] AS cost, v_fits[c.i] AS fits, s.o_places[c.cell] AS place, s.o_n[c.cell] AS n,
                         s.o_capacities[c.cell] AS capacity, s.o_d[c.cell] AS d, s.o_spans[c.cell] AS span,
                         s.o_sliding[c.cell] AS sliding, s.o_base[c.cell] AS base, s.o_at[c.cell] AS at,
                         s.o_previous[c.cell] AS previous, s.o_marks[c.cell] AS mark, s.o_logs[c.cell] AS log, p_keys[c.cell] AS key,
                         CASE WHEN v_pays[c.claim] AND v_fits[c.i] THEN p_costs[c.i] ELSE 0 END AS charged,
                         (s.o_room[c.cell] - v_left[c.i]) / s.o_d[c.cell] AS before
                  FROM (SELECT i, p_claims[i] AS claim, p_cells[i] AS cell FROM generate_series(1, v_checks) AS i
                        WHERE v_tells[p_claims[i]] OFFSET 0) AS c OFFSET 0) AS k
            CROSS JOIN LATERAL ration.decide_figures_v1(
                o_now, k.place, CASE WHEN NOT k.fits AND k.cost <= k.capacity THEN k.cost END, k.capacity, k.before + k.charged, k.n, k.d,
                k.span, k.sliding, k.base, k.at, k.previous, k.mark, CASE WHEN k.place < 7 THEN k.log ELSE ROW (ration.slot_log_v1(
                    p_shard, k.key, o_now, k.base + k.before + k.cost - k.capacity))::ration.log_entries END) AS f;
        END IF;
        EXIT WHEN v_stands;

        FOREACH v_cell IN ARRAY coalesce(l.o_cells, '{}') LOOP
            v_rows[v_cell] := true;
        END LOOP;
        v_needed := array_fill(false, ARRAY[v_keys]);
        FOR i IN 1 .. v_checks LOOP
            IF v_pends[p_claims[i]] THEN
                v_needed[p_cells[i]] := true;
                o_status[p_claims[i]] := 0;
                o_allowed[p_claims[i]] := false;
            END IF;
        END LOOP;
        o_now := ration.clock_v1(p_now);
        s := ration.decide_read_v1(p_shard, p_generation, p_policies, p_keys, v_needed, o_now);
    END LOOP;

    IF v_tellings > 1 THEN
        -- Replays, the first and the second look were told one after the other.
        SELECT array_agg(p.of), array_agg(p.claim), array_agg(p.policy), array_agg(p.version), array_agg(p.admitted),
               array_agg(p.remaining), array_agg(p.retry_after), array_agg(p.reset_after), array_agg(p.slot), array_agg(p.slot_expires),
               array_agg(p.cost)
        INTO v_of, o_claim, o_policy, o_version, o_admitted, o_remaining, o_retry_after, o_reset_after, o_slot, o_slot_expires, o_cost
        FROM (SELECT * FROM unnest(v_of, o_claim, o_policy, o_version, o_admitted, o_remaining, o_retry_after, o_reset_after, o_slot,
                                   o_slot_expires, o_cost) WITH ORDINALITY
                       AS u (of, claim, policy, version, admitted, remaining, retry_after, reset_after, slot, slot_expires, cost, place)
              ORDER BY u.claim, u.place) AS p;
    END IF;
    IF true = ANY (v_pays) THEN
        PERFORM ration.decide_write_v1(o_now, l.o_cells, l.o_rows, s.o_places, s.o_versions, s.o_room, v_room, s.o_base, s.o_at,
                                       s.o_previous, s.o_marks, s.o_logs);
        IF 7 = ANY (s.o_places) THEN
            INSERT INTO ration.slot (expires_at, ttl, cost, id, key, shard, policy)
            SELECT u.expires, s.o_spans[p_cells[u.of]], u.cost, u.slot, p_keys[p_cells[u.of]], p_shard, u.policy
            FROM unnest(v_of, o_policy, o_slot, o_slot_expires, o_cost) AS u (of, policy, slot, expires, cost)
            WHERE u.of > 0 AND u.slot IS NOT NULL;
        END IF;
    END IF;
    IF v_operating THEN
        INSERT INTO ration.operation (decided_at, expires_at, stated, price, key, content, shard, allowed, parts)
        SELECT o_at[c.claim], o_at[c.claim] + p_retention, p_stated[c.claim], c.price, p_operations[c.claim], p_contents[c.claim],
               p_shard, o_allowed[c.claim], c.parts
        FROM (SELECT u.claim, max(p_costs[u.of]) AS price,
                     array_agg(ROW (u.policy, u.version, p_keys[p_cells[u.of]], u.cost, p_priced[u.of], u.admitted, u.remaining,
                                    u.retry_after, u.reset_after, CASE WHEN u.cost > 0 THEN s.o_marks[p_cells[u.of]] END, u.slot,
                                    u.slot_expires)::ration.operation_part ORDER BY u.of) AS parts
              FROM unnest(v_of, o_claim, o_policy, o_version, o_admitted, o_remaining, o_retry_after, o_reset_after, o_slot,
                          o_slot_expires, o_cost)
                   AS u (of, claim, policy, version, admitted, remaining, retry_after, reset_after, slot, slot_expires, cost)
              WHERE u.of > 0 AND p_operations[u.claim] IS NOT NULL
              GROUP BY u.claim) AS c;
    END IF;
    IF v_operating OR (true = ANY (v_pays) AND s.o_places && ARRAY[2, 4, 6, 7] /* the logged ones */) THEN
        PERFORM ration.commit_durably_v1();
    END IF;
END $$;

-- corrected_v1: by how much a settlement changes what a window or a log counts. The one home of that rule: the difference
-- of the two costs, but an extra charge never raises a count above twice the limit, so that no arithmetic overflows.
--
-- Arguments: the cost charged and the actual one, what is counted together now, the limit.
-- Answers: less than the difference of the costs when the extra charge was cut.
-- Units: tokens. Clock: none. Locks: none. SQLSTATE: none: limits are below 2^62.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.corrected_v1(p_charged bigint, p_actual bigint, p_counted bigint, p_limit bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN least(p_actual - p_charged, greatest(0, 2 * p_limit - p_counted));

-- log_corrected_v1: a log whose entry of an instant was settled to another cost. An entry of nothing is dropped.
--
-- Arguments: pairs of instant and tokens, ascending by instant; the instant of the entry; as corrected_v1.
-- Answers: the log, NULL when it has no such entry; whether the extra charge was cut.
-- Units: tokens, microseconds. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.log_corrected_v1(
    p_entries bigint[], p_mark bigint, p_charged bigint, p_actual bigint, p_limit bigint,
    OUT o_entries bigint[], OUT o_clamped boolean)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    v_counted bigint;
    v_place   int;  -- where the entry's tokens stand
    v_change  bigint;
BEGIN
    SELECT sum(p_entries[2 * i]), max(2 * i) FILTER (WHERE p_entries[2 * i - 1] = p_mark) INTO v_counted, v_place
    FROM generate_series(1, cardinality(p_entries) / 2) AS i;
    IF v_place IS NULL THEN
        RETURN;
    END IF;
    v_change := ration.corrected_v1(p_charged, p_actual, v_counted, p_limit);
    o_clamped := v_change < p_actual - p_charged;
    IF p_entries[v_place] + v_change > 0 THEN
        p_entries[v_place] := p_entries[v_place] + v_change;
        o_entries := p_entries;
    ELSE
        o_entries := p_entries[:v_place - 2] || p_entries[v_place + 1:];
    END IF;
END $$;

-- settling_v1: the parts of an operation whose charge a settlement replaces, each with its policy in force: those charged
-- by the request's own cost, but for slots, which are released instead. A policy that is gone has none.
--
-- Answers: part, its number among p_parts from 1; place, see state_place_v1; its key, cost and mark; the policy's figures.
-- Units: tokens, microseconds, units of 1/d token. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.settling_v1(p_parts ration.operation_part[])
RETURNS TABLE (part int, place int, key uuid, cost bigint, mark bigint, policy int, version int, n bigint, d bigint,
               capacity bigint, capacity_units bigint, idle_balance bigint, idle_at bigint, span bigint, sliding boolean)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT e.part::int, ration.state_place_v1(p.algorithm, p.strict, p.durability), e.key, e.cost, e.mark, p.number, p.version, p.n, p.d,
           p.capacity, p.capacity_units, p.idle_balance, p.idle_at, p.span, p.algorithm = 'sliding_window_counter'
    FROM unnest(p_parts) WITH ORDINALITY AS e (policy, version, key, cost, priced, admitted, remaining, retry_after, reset_after,
                                               mark, slot, slot_expires_at, part)
    JOIN ration.policy AS p ON p.number = e.policy
    WHERE e.priced AND e.cost > 0 AND e.slot IS NULL;
END;

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
BEGIN
    WITH owed AS (
        SELECT s.part, s.place, s.key, s.version, s.capacity_units, greatest(held.at, p_now) AS at,
               ration.settled_v1(held.balance, held.at, p_now, s.n, s.capacity_units) + (s.cost - p_actual)::numeric * s.d AS balance
        FROM ration.settling_v1(p_parts) AS s
        CROSS JOIN LATERAL (
            SELECT f.version, f.balance, f.at FROM ration.bucket_fast AS f
            WHERE s.place = 1 AND f.shard = p_shard AND f.key = s.key
            UNION ALL SELECT f.version, f.balance, f.at FROM ration.bucket_durable AS f
            WHERE s.place = 2 AND f.shard = p_shard AND f.key = s.key OFFSET 0) AS b
        LEFT JOIN LATERAL (SELECT c.o_balance, c.o_at FROM ration.carry_v1(s.policy, b.version, s.version, b.balance, b.at) AS c
                           WHERE b.version < s.version OFFSET 0) AS carried ON true  -- not called for rows in force
        CROSS JOIN LATERAL (SELECT coalesce(carried.o_balance, b.balance) AS balance, coalesce(carried.o_at, b.at) AS at) AS held
    ), outcome AS (
        SELECT o.part, o.place, p_shard AS shard, o.key, o.version, o.at, o.balance < -o.capacity_units AS clamped,
               least(o.capacity_units, greatest(-o.capacity_units, o.balance))::bigint AS balance
        FROM owed AS o
    ), fast AS (
        UPDATE ration.bucket_fast AS b SET balance = o.balance, at = o.at, version = o.version
        FROM outcome AS o WHERE o.place = 1 AND b.shard = ANY (ARRAY[o.shard]) AND b.key = o.key
    ), durable AS (
        UPDATE ration.bucket_durable AS b SET balance = o.balance, at = o.at, version = o.version
        FROM outcome AS o WHERE o.place = 2 AND b.shard = ANY (ARRAY[o.shard]) AND b.key = o.key
    )
    SELECT array_agg(o.part), array_agg(o.part) FILTER (WHERE o.clamped) INTO o_applied, o_clamped FROM outcome AS o;
END $$;

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

-- settle_v1: replaces, once, the cost that an operation was charged by what it came to cost, in the state of every policy
-- that charged by the request's own cost, and records with the operation what became of each charge.
--
-- Arguments: p_operation is the key of the operation id; p_actual 0 gives everything back.
-- Answers: o_status 0 settled | 1 settled before by the same cost | 2 settled before by another cost | 3 no such operation,
--        or it was denied | 4 it was charged by concurrency alone: release its slots. With 0 and 1: o_at, when it was
--        settled, and one entry for each charge, in the order of the decision (NULL when there was none): policy and version
--        that charged, tokens before and after, whether the key's state was changed, and whether the extra charge went
--        beyond what a key can owe and was cut there.
--        A bucket is credited or charged as it stands now, from minus to plus its capacity. A window or a log is
--        changed only while the charge's own window or entry counts, up to twice the limit. Fast state is not changed for
--        what was charged before it was last lost.
-- Units: tokens, microseconds.
-- Clock: clock_timestamp() once, after the locks; p_now instead, where the database is marked as a test clock.
-- Locks: the operation's row; then rows of state, in the order of state_place_v1, ascending by key in each table. Each is
--        waited for 5 ms at most.
-- SQLSTATE: RN001 RN002 from ready_v1, RN003 from clock_v1; RN004 p_actual is NULL or below 0; with nothing settled, to be
--           called again: 55P03 a row was held, or deleted meanwhile, 57014 statement_timeout.
CREATE OR REPLACE FUNCTION ration.settle_v1(
    p_shard int, p_operation uuid, p_actual bigint, p_now bigint DEFAULT NULL,
    OUT o_status int, OUT o_at bigint, OUT o_policy int[], OUT o_version int[], OUT o_charged bigint[], OUT o_actual bigint[],
    OUT o_applied boolean[], OUT o_clamped boolean[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- While it waits for one row it holds others, for which decisions wait: far less than a decision may take.
SET lock_timeout = '5ms'
-- Pinned plans, and why shard is looked for as an array and behind OFFSET 0: see take_v1.
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET enable_memoize = off
AS $$
DECLARE
    v_operation ration.operation;
    v_parts     ration.operation_part[];  -- what was charged, in the order of the decision
    v_counted   ration.operation_part[];  -- the same, NULL for those that were lost in a crash
    v_places    int[];                    -- of the parts that this settlement may change
    v_policies  int[];
    v_keys      uuid[];
    v_count     int;
    v_applied   int[];                    -- parts whose state was changed
    v_clamped   int[];                    -- parts whose extra charge was cut
BEGIN
    PERFORM ration.ready_v1(false, NULL);
    IF (p_actual >= 0) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'an actual cost is 0 or more';
    END IF;
    SELECT o.* INTO v_operation FROM ration.operation AS o
    WHERE o.shard = p_shard AND o.key = p_operation FOR NO KEY UPDATE;
    v_parts := ARRAY(SELECT v_operation.parts[i] FROM generate_subscripts(v_operation.parts, 1) AS i
                     WHERE (v_operation.parts[i]).cost > 0 ORDER BY i);
    o_status := CASE
        WHEN v_operation.allowed IS NOT TRUE THEN 3
        WHEN (SELECT bool_and(e.slot IS NOT NULL) FROM unnest(v_parts) AS e WHERE e.priced) THEN 4
        WHEN v_operation.settled_cost = p_actual THEN 1
        WHEN v_operation.settled_cost IS NOT NULL THEN 2
        ELSE 0 END;

    IF o_status = 0 THEN
        PERFORM ration.commit_durably_v1();
        SELECT count(*), array_agg(s.place), array_agg(s.policy), array_agg(s.key) INTO v_count, v_places, v_policies, v_keys
        FROM ration.settling_v1(v_parts) AS s;
        PERFORM ration.ready_v1(v_places && ARRAY[1, 3, 5] /* the fast ones */, NULL);
        IF (SELECT count(*)
            FROM ration.decide_lock_v1(p_shard, 'wait', array_fill(true, ARRAY[v_count]), v_places, v_policies, v_keys,
                                       array_fill(NULL::xid, ARRAY[v_count])) AS l, unnest(l.o_cells)) < v_count THEN
            -- Inserting it now, behind locks, could make two wait for each other.
            RAISE EXCEPTION USING ERRCODE = '55P03', MESSAGE = 'a row was deleted meanwhile: call again';
        END IF;
        o_at := ration.clock_v1(p_now);
        v_counted := v_parts;
        IF v_operation.decided_at < (SELECT max(l.found_at) FROM ration.state_loss AS l) THEN
            -- What it was charged in fast state was lost with it: what stands there now never counted that.
            v_counted := ARRAY(SELECT CASE WHEN s.place IN (1, 3, 5) THEN NULL ELSE v_parts[i] END
                               FROM generate_subscripts(v_parts, 1) AS i LEFT JOIN ration.settling_v1(v_parts) AS s ON s.part = i
                               ORDER BY i);
        END IF;
        -- New statements see every row as the lock holders before us left it.
        SELECT coalesce(b.o_applied || w.o_applied || l.o_applied, '{}'), coalesce(b.o_clamped || w.o_clamped || l.o_clamped, '{}')
        INTO v_applied, v_clamped
        FROM ration.settle_buckets_v1(p_shard, v_counted, p_actual, o_at) AS b,
             ration.settle_windows_v1(p_shard, v_counted, p_actual, o_at) AS w,
             ration.settle_logs_v1(p_shard, v_counted, p_actual, o_at) AS l;
        SELECT array_agg(ROW (e.policy, e.version, e.cost, CASE WHEN e.priced AND e.slot IS NULL THEN p_actual ELSE e.cost END,
                              e.ordinality = ANY (v_applied), e.ordinality = ANY (v_clamped))::ration.settled_part ORDER BY e.ordinality)
        INTO v_operation.settled
        FROM unnest(v_parts) WITH ORDINALITY AS e;
        UPDATE ration.operation AS o SET settled_at = o_at, settled_cost = p_actual, settled = v_operation.settled
        WHERE o.shard = p_shard AND o.key = p_operation;
    ELSIF o_status = 1 THEN
        o_at := v_operation.settled_at;
    END IF;
    IF o_status IN (0, 1) THEN
        SELECT array_agg(e.policy), array_agg(e.version), array_agg(e.charged), array_agg(e.actual), array_agg(e.applied),
               array_agg(e.clamped)
        INTO o_policy, o_version, o_charged, o_actual, o_applied, o_clamped
        FROM unnest(v_operation.settled) AS e;
    END IF;
END $$;

-- release_slot_v1: gives a slot back before it expires, whatever has become of its policy.
--
-- Answers: whether it was live until now; false when there is no such slot, or it has expired.
-- Units: none. Clock: clock_timestamp() once, under the lock; p_now instead, where the database is marked as a test clock.
-- Locks: the slot's row, waited for 5 ms at most.
-- SQLSTATE: RN001 from ready_v1, RN003 from clock_v1; with nothing released, to be called again: 55P03 the row was held, 57014
--           statement_timeout.
CREATE OR REPLACE FUNCTION ration.release_slot_v1(p_shard int, p_slot uuid, p_now bigint DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5ms'  -- why so short: see settle_v1
AS $$
DECLARE
    v_now bigint;
BEGIN
    PERFORM ration.ready_v1(false, NULL);
    PERFORM ration.commit_durably_v1();
    PERFORM FROM ration.slot AS s WHERE s.shard = p_shard AND s.id = p_slot FOR UPDATE;
    v_now := ration.clock_v1(p_now);
    DELETE FROM ration.slot AS s WHERE s.shard = p_shard AND s.id = p_slot AND s.expires_at > v_now;
    RETURN FOUND;
END $$;

-- renew_slot_v1: lets a live slot live for its time again, from now on.
--
-- Answers: when it expires now; NULL when there is no such slot, or it has expired: then somebody else may have its place.
-- Units: microseconds. Clock: clock_timestamp() once, under the lock; p_now instead, where the database is marked as a test
--        clock.
-- Locks: the key's row of ration.slot_parent, under which slots are acquired too: who acquires sees it expired, or renewed; then
--        the slot's row. Each is waited for 5 ms at most.
-- SQLSTATE: RN001 from ready_v1, RN003 from clock_v1; with nothing renewed, to be called again: 55P03 a row was held, 57014
--           statement_timeout.
CREATE OR REPLACE FUNCTION ration.renew_slot_v1(p_shard int, p_slot uuid, p_now bigint DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5ms'  -- why so short: see settle_v1
AS $$
DECLARE
    v_now     bigint;
    v_expires bigint;
BEGIN
    PERFORM ration.ready_v1(false, NULL);
    PERFORM ration.commit_durably_v1();
    PERFORM FROM ration.slot_parent AS o
    WHERE o.shard = p_shard AND o.key = (SELECT s.key FROM ration.slot AS s WHERE s.shard = p_shard AND s.id = p_slot)
    FOR NO KEY UPDATE;
    v_now := ration.clock_v1(p_now);
    UPDATE ration.slot AS s SET expires_at = v_now + s.ttl
    WHERE s.shard = p_shard AND s.id = p_slot AND s.expires_at > v_now
    RETURNING s.expires_at INTO v_expires;
    RETURN v_expires;
END $$;

-- stretch_v1: the next stretch of a table that a cleaner examines, so that a call is bounded whatever it finds.
--
-- Arguments: the table, NULL where the durability is, and its column behind the shard in its primary key; the shard, the key
--        to go on behind (NULL: from the first), rows to examine.
-- Answers: o_after and o_until, between which the stretch lies: behind the one, up to the other, which is NULL when nothing is
--        there; o_last, where to go on behind, NULL when the end was reached.
-- Units: rows. Clock: none. Locks: none.
-- SQLSTATE: RN001 from ready_v1; RN004 no durability, p_rows outside 1 to 10,000.
CREATE OR REPLACE FUNCTION ration.stretch_v1(
    p_table text, p_column text, p_shard int, p_after uuid, p_rows int, OUT o_after uuid, OUT o_until uuid, OUT o_last uuid)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_examined int;
BEGIN
    PERFORM ration.ready_v1(false, NULL);
    IF (p_table IS NOT NULL AND p_rows BETWEEN 1 AND 10000) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a call examines 1 to 10000 rows, durable ones or not';
    END IF;
    o_after := coalesce(p_after, '00000000-0000-0000-0000-000000000000');
    -- Planned anew each time: once in a while, and over any table.
    EXECUTE format('SELECT count(*), (array_agg(s.key ORDER BY s.key DESC))[1]
                    FROM (SELECT t.%2$I AS key FROM ration.%1$I AS t WHERE t.shard = $1 AND t.%2$I > $2 ORDER BY 1 LIMIT $3) AS s',
                   p_table, p_column)
        INTO v_examined, o_until USING p_shard, o_after, p_rows;
    IF v_examined = p_rows THEN
        o_last := o_until;
    END IF;
END $$;

-- clean_v1: deletes buckets that hold exactly what an idle bucket holds: then no answer changes, since an absent bucket
-- is an idle bucket. Examines one stretch of keys a call; call it again from where it ended until that is NULL.
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
                           WHERE b.shard = $1 AND b.key > $2 AND b.key <= $3 AND b.at <= $4 AND p.idle_at <= $4
                             AND ration.balance_at_v1(b.policy, b.version, b.balance, b.at, $4)
                               = ration.settled_v1(p.idle_balance, p.idle_at, $4, p.n, p.capacity_units)
                           ORDER BY b.key FOR NO KEY UPDATE OF b SKIP LOCKED) AS idle
                    WHERE d.shard = $1 AND d.key = idle.key', v_table)
        USING p_shard, s.o_after, s.o_until, v_now;
    GET DIAGNOSTICS o_deleted = ROW_COUNT;
END $$;

-- clean_windows_v1: deletes windows that no later instant counts: then no answer changes. A window counts until it has
-- passed, and in a sliding one until the window behind it has passed too. An idle key is as free by then: no row begins
-- before the window that an idle key has.
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
                             AND w.start + p.span * CASE p.algorithm WHEN ''fixed_window'' THEN 1 ELSE 2 END <= $4
                           ORDER BY w.key FOR NO KEY UPDATE OF w SKIP LOCKED) AS idle
                    WHERE d.shard = $1 AND d.key = idle.key', v_table)
        USING p_shard, s.o_after, s.o_until, v_now;
    GET DIAGNOSTICS o_deleted = ROW_COUNT;
END $$;

-- clean_logs_v1: deletes logs of which no entry counts any more, where an idle key is as free: then no answer changes.
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
                             AND coalesce(l.entries[cardinality(l.entries) - 1] <= $4 - p.span, true)
                             AND coalesce(idle.entries[cardinality(idle.entries) - 1] <= $4 - p.span, true)
                           ORDER BY l.key FOR NO KEY UPDATE OF l SKIP LOCKED) AS idle
                    WHERE d.shard = $1 AND d.key = idle.key', v_table)
        USING p_shard, s.o_after, s.o_until, v_now;
    GET DIAGNOSTICS o_deleted = ROW_COUNT;
END $$;

-- clean_slots_v1: deletes slots that have expired: those of holders that never came back. They counted no more.
--
-- Arguments: as clean_v1, but by the slots' ids. Answers: as clean_v1.
-- Units: rows. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the slots it deletes, by SKIP LOCKED. SQLSTATE: RN003 from clock_v1; RN001 RN004 from stretch_v1.
CREATE OR REPLACE FUNCTION ration.clean_slots_v1(
    p_shard int, p_after uuid, p_rows int, p_now bigint DEFAULT NULL, OUT o_deleted int, OUT o_last uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_now constant bigint := ration.clock_v1(p_now);
    s              record := ration.stretch_v1('slot', 'id', p_shard, p_after, p_rows);
BEGIN
    o_last := s.o_last;
    DELETE FROM ration.slot AS d
    USING (SELECT t.id FROM ration.slot AS t
           WHERE t.shard = p_shard AND t.id > s.o_after AND t.id <= s.o_until AND t.expires_at <= v_now
           ORDER BY t.id FOR UPDATE SKIP LOCKED) AS expired
    WHERE d.shard = p_shard AND d.id = expired.id;
    GET DIAGNOSTICS o_deleted = ROW_COUNT;
END $$;

-- clean_slot_parents_v1: deletes the parents that have no slots: a key without one holds nothing.
--
-- Arguments: as clean_v1. Answers: as clean_v1.
-- Units: rows. Clock: none; p_now is not looked at: it is there so that all cleaners are called alike.
-- Locks: parents without slots, ascending by key, by SKIP LOCKED. SQLSTATE: RN001 RN004 from stretch_v1.
CREATE OR REPLACE FUNCTION ration.clean_slot_parents_v1(
    p_shard int, p_after uuid, p_rows int, p_now bigint DEFAULT NULL, OUT o_deleted int, OUT o_last uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    s      record := ration.stretch_v1('slot_parent', 'key', p_shard, p_after, p_rows);
    v_held uuid[];
BEGIN
    o_last := s.o_last;
    SELECT array_agg(f.key) INTO v_held
    FROM (SELECT o.key FROM ration.slot_parent AS o
          WHERE o.shard = p_shard AND o.key > s.o_after AND o.key <= s.o_until
            AND NOT EXISTS (SELECT FROM ration.slot AS t WHERE t.shard = p_shard AND t.key = o.key)
          ORDER BY o.key FOR UPDATE SKIP LOCKED) AS f;
    -- A new statement: it sees the slots that were acquired before the locks were ours. Nobody acquires one without them.
    DELETE FROM ration.slot_parent AS d
    WHERE d.shard = p_shard AND d.key = ANY (v_held)
      AND NOT EXISTS (SELECT FROM ration.slot AS t WHERE t.shard = p_shard AND t.key = d.key);
    GET DIAGNOSTICS o_deleted = ROW_COUNT;
END $$;

-- clean_operations_v1: deletes outcomes of operation ids that have been kept long enough, the oldest first.
--
-- Arguments: the shard, rows to delete at most. Answers: how many were deleted.
-- Units: rows. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the rows it deletes, by SKIP LOCKED: one that is being settled stays.
-- SQLSTATE: RN001 from ready_v1, RN003 from clock_v1; RN004 p_rows outside 1 to 10,000.
CREATE OR REPLACE FUNCTION ration.clean_operations_v1(p_shard int, p_rows int, p_now bigint DEFAULT NULL)
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_now constant bigint := ration.clock_v1(p_now);
    v_deleted      int;
BEGIN
    PERFORM ration.ready_v1(false, NULL);
    IF (p_rows BETWEEN 1 AND 10000) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a call deletes 1 to 10000 rows';
    END IF;
    DELETE FROM ration.operation AS d
    USING (SELECT o.key FROM ration.operation AS o
           WHERE o.shard = p_shard AND o.expires_at <= v_now
           ORDER BY o.expires_at LIMIT p_rows FOR UPDATE SKIP LOCKED) AS expired
    WHERE d.shard = p_shard AND d.key = expired.key;
    GET DIAGNOSTICS v_deleted = ROW_COUNT;
    RETURN v_deleted;
END $$;

-- recover_v1: after a crash emptied the unlogged tables, records the loss, sets what the state of fast policies starts
-- from, and begins a new incarnation. Until it has committed, every call on fast state ends in RN002.
--
-- Answers: whether a loss was found; false when another session has recovered already or nothing was lost.
--        Idle states under afterLoss "idle" stay as they are; under "empty" they hold nothing at the instant of the loss:
--        an empty bucket, or the whole limit charged at that instant. Slots are always logged: none of them was lost.
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
    SELECT count(*) INTO v_fast FROM ration.policy AS p WHERE p.durability = 'fast' AND p.algorithm <> 'concurrency';
    WITH empty AS (
        -- Nothing goes back behind where it stood; an empty log stands nowhere.
        UPDATE ration.policy_version AS v
        SET idle_balance = 0,
            idle_at = CASE WHEN ration.state_place_v1(p.algorithm, p.strict, p.durability) >= 5 AND v.idle_balance = v.capacity_units
                           THEN v_now ELSE greatest(v_now, v.idle_at) END
        FROM ration.policy AS p
        WHERE v.number = p.number AND v.version = p.version AND p.durability = 'fast' AND p.algorithm <> 'concurrency'
          AND v.content ->> 'afterLoss' = 'empty'
        RETURNING v.number, v.idle_at
    )
    UPDATE ration.policy AS p SET idle_balance = 0, idle_at = e.idle_at FROM empty AS e WHERE p.number = e.number;
    GET DIAGNOSTICS v_empty = ROW_COUNT;

    -- A marker of another incarnation is possible where the tables were copied: rows beside it belong to no life of ours.
    DELETE FROM ration.incarnation_marker;
    DELETE FROM ration.bucket_fast;
    DELETE FROM ration.window_fast;
    DELETE FROM ration.log_fast;
    INSERT INTO ration.incarnation_marker (incarnation) VALUES (v_new);
    UPDATE ration.policy_set SET incarnation = v_new;
    INSERT INTO ration.state_loss (found_at, lost_incarnation, new_incarnation, policies_idle, policies_empty)
    VALUES (v_now, v_lost, v_new, v_fast - v_empty, v_empty);
    RETURN true;
END $$;

-- put_policy_v1: installs a version of a policy, in one transaction with its audit row and the bump of the generation.
--
-- Arguments: p_expected is the version in force, 0 when the policy must not exist yet. p_content is the stored form; n,
--        d and capacity are its limit in stored units, and are refused where they disagree with it: those of any other
--        algorithm than the token bucket are 1, 1 and its limit. p_balances is the rule by which live balances are
--        carried over: keep.
-- Answers: o_outcome created | changed | unchanged (the same content: no new version) | conflict (o_version is the one
--        in force, 0 when there is none; nothing was changed) | restart (the members o_restarts say which state the policy
--        keeps, so that its balances could not be carried over; nothing was changed); number, version, instant and
--        generation of what is in force now.
-- Units: n in units per microsecond, d in units per token, capacity in tokens, instants in microseconds.
-- Clock: clock_timestamp(), read under the lock; the new version is never installed before the one it replaces.
-- Locks: the row of ration.policy_set, first: policy changes are one after the other. Decisions wait for none of this.
-- SQLSTATE: RN003 from clock_v1; RN005 the figures are not those of the content, or out of the bounds of its algorithm;
--           23514 another bound of the table.
CREATE OR REPLACE FUNCTION ration.put_policy_v1(
    p_id text, p_expected int, p_content json, p_n bigint, p_d bigint, p_capacity bigint, p_balances text,
    p_actor text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL,
    OUT o_outcome text, OUT o_number int, OUT o_version int, OUT o_installed_at bigint, OUT o_generation bigint,
    OUT o_restarts text[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_limit     constant json    := p_content -> 'limit';
    v_algorithm constant text    := coalesce(v_limit ->> 'algorithm', 'token_bucket');
    v_span      constant numeric := 1000000 * CASE v_algorithm WHEN 'token_bucket' THEN 0
                                                                WHEN 'concurrency' THEN (v_limit ->> 'ttlSeconds')::numeric
                                                                ELSE (v_limit ->> 'windowSeconds')::numeric END;
    v_mode      constant text    := coalesce(p_content ->> 'mode', 'enforce');
    v_before    ration.policy_version;
    v_idle      record;
    v_units     bigint;
BEGIN
    -- In numeric, and true or refused: a missing figure must not pass for an equal one.
    IF (p_capacity::numeric * p_d < 2::numeric ^ 62 AND CASE
        WHEN v_algorithm = 'token_bucket' THEN
            p_n::numeric * 1000000 * (v_limit ->> 'refillSeconds')::numeric = p_d::numeric * (v_limit ->> 'refillTokens')::numeric
            AND (v_limit ->> 'refillSeconds')::numeric > 0
            AND p_capacity::numeric = (v_limit ->> 'capacity')::numeric
        ELSE
            p_n = 1 AND p_d = 1 AND p_capacity::numeric = (v_limit ->> 'limit')::numeric
            -- Whole microseconds, a millisecond to 366 days. Package policy has the same bounds, and says which is missed.
            AND v_span = trunc(v_span) AND v_span BETWEEN 1000 AND 31622400000000
            AND (v_algorithm <> 'sliding_window_counter' OR p_capacity::numeric * v_span < 2::numeric ^ 61)
            AND (v_algorithm <> 'sliding_window_log' OR p_capacity <= 1000)
            AND (v_algorithm <> 'concurrency' OR p_capacity <= 10000) END) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN005', MESSAGE = 'n, d and capacity are not those of the policy''s content, or out of bounds';
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
        FROM unnest(ARRAY['per', 'ipPrefix', 'durability', 'scope', 'limit,algorithm', 'limit,windowSeconds', 'limit,strict']) AS m (path)
        -- As jsonb, in which 60 and 60.0 are one number.
        WHERE (v_before.content #> string_to_array(m.path, ','))::jsonb IS DISTINCT FROM (p_content #> string_to_array(m.path, ','))::jsonb;
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
        INSERT INTO ration.policy (id, version, durability, algorithm, strict, span, mode, n, d, capacity, capacity_units,
                                   idle_balance, idle_at, generation)
        VALUES (p_id, o_version, p_content ->> 'durability', v_algorithm, coalesce((v_limit ->> 'strict')::boolean, false), v_span,
                v_mode, p_n, p_d, p_capacity, v_units, v_units, o_installed_at, o_generation)
        RETURNING number INTO o_number;
    END IF;
    INSERT INTO ration.policy_version (number, version, content, n, d, capacity, capacity_units, idle_balance, idle_at,
                                       balances, installed_at, generation)
    VALUES (o_number, o_version, p_content, p_n, p_d, p_capacity, v_units, v_units, o_installed_at,
            p_balances, o_installed_at, o_generation);
    IF o_outcome = 'changed' THEN
        -- The idle bucket goes through the change as every bucket does. Windows and logs keep what they have counted, so
        -- their idle state keeps what is used of it.
        IF v_algorithm = 'token_bucket' THEN
            v_idle := ration.carry_v1(o_number, v_before.version, o_version, v_before.idle_balance, v_before.idle_at);
        ELSE
            SELECT v_units - (v_before.capacity_units - v_before.idle_balance) AS o_balance, v_before.idle_at AS o_at INTO v_idle;
        END IF;
        UPDATE ration.policy_version SET idle_balance = v_idle.o_balance, idle_at = v_idle.o_at
        WHERE number = o_number AND version = o_version;
        UPDATE ration.policy
        SET version = o_version, span = v_span, mode = v_mode, n = p_n, d = p_d, capacity = p_capacity, capacity_units = v_units,
            idle_balance = v_idle.o_balance, idle_at = v_idle.o_at, generation = o_generation
        WHERE number = o_number;
    END IF;
    UPDATE ration.policy_set SET generation = o_generation;
    INSERT INTO ration.audit (at, actor, action, policy, version_before, version_after, before, after, reason, request_id)
    VALUES (o_installed_at, p_actor, 'policy.' || o_outcome, p_id, v_before.version, o_version, v_before.content, p_content,
            p_reason, p_request_id);
    PERFORM pg_notify('ration_policy', o_generation::text);
END $$;

-- bucket_now: every stored bucket as it is at this instant: the whole tokens it holds and when it is full. For people;
-- it reads without locks. A key that is not listed is an idle bucket. Find a caller's row by
-- key = ration.bucket_key(policy, attributes).
CREATE OR REPLACE VIEW ration.bucket_now AS
SELECT p.id::text AS policy, b.key, b.shard, p.durability, b.version AS settled_version, p.version AS policy_version,
       greatest(0, held.balance / p.d) AS tokens, p.capacity,
       ration.instant_v1(clock.now, ration.wait_v1(p.capacity_units - held.balance, p.n, b.at - clock.now)) AS full_at
FROM (SELECT f.shard, f.key, f.policy, f.version, f.balance, f.at FROM ration.bucket_fast AS f
      UNION ALL
      SELECT d.shard, d.key, d.policy, d.version, d.balance, d.at FROM ration.bucket_durable AS d) AS b
JOIN ration.policy AS p ON p.number = b.policy
CROSS JOIN (SELECT ration.clock_v1() AS now) AS clock
CROSS JOIN LATERAL (SELECT ration.balance_at_v1(b.policy, b.version, b.balance, b.at, clock.now) AS balance) AS held;

-- log_now: every stored key of sliding window logs and strict sliding window counters as it is at this instant: what is used
-- of its limit and when nothing is any more. For people; it reads without locks. A key that is not listed is idle.
CREATE OR REPLACE VIEW ration.log_now AS
SELECT p.id::text AS policy, l.key, l.shard, p.durability, p.version AS policy_version, p.capacity - f.remaining AS used, p.capacity,
       ration.instant_v1(clock.now, f.reset_after) AS full_at
FROM (SELECT f.shard, f.key, f.policy, f.entries FROM ration.log_fast AS f
      UNION ALL
      SELECT d.shard, d.key, d.policy, d.entries FROM ration.log_durable AS d) AS l
JOIN ration.policy AS p ON p.number = l.policy
CROSS JOIN (SELECT ration.clock_v1() AS now) AS clock
CROSS JOIN LATERAL ration.log_live_v1(l.entries, clock.now - p.span) AS held
CROSS JOIN LATERAL (SELECT held.o_live[cardinality(held.o_live) - 1] AS at) AS newest
CROSS JOIN LATERAL ration.decide_figures_v1(
    clock.now, 5 /* state_place_v1 */, NULL, p.capacity, 0, p.n, p.d, p.span, false,
    held.o_used, newest.at, 0, newest.at, ROW (held.o_live)::ration.log_entries) AS f;

-- slot_now: every live slot: whose it is, how much of its key's limit it holds and when it expires. For people; it reads
-- without locks.
CREATE OR REPLACE VIEW ration.slot_now AS
SELECT p.id::text AS policy, s.key, s.shard, s.id AS slot, s.cost, p.capacity, ration.instant_v1(s.expires_at, 0) AS expires_at
FROM ration.slot AS s
JOIN ration.policy AS p ON p.number = s.policy
CROSS JOIN (SELECT ration.clock_v1() AS now) AS clock
WHERE s.expires_at > clock.now;

-- window_now: every stored key of fixed windows and sliding window counters as it is at this instant: what is used of its
-- limit and when nothing is any more. For people; it reads without locks. A key that is not listed is idle. Logs, and strict
-- counters, are in log_now.
CREATE OR REPLACE VIEW ration.window_now AS
SELECT p.id::text AS policy, w.key, w.shard, p.durability, p.version AS policy_version, p.capacity - f.remaining AS used, p.capacity,
       ration.instant_v1(clock.now, f.reset_after) AS full_at
FROM (SELECT f.shard, f.key, f.policy, f.start, f.current, f.previous FROM ration.window_fast AS f
      UNION ALL
      SELECT d.shard, d.key, d.policy, d.start, d.current, d.previous FROM ration.window_durable AS d) AS w
JOIN ration.policy AS p ON p.number = w.policy
CROSS JOIN (SELECT ration.clock_v1() AS now) AS clock
CROSS JOIN LATERAL ration.window_at_v1(w.start, w.current, w.previous, p.span, clock.now) AS held
CROSS JOIN LATERAL ration.decide_figures_v1(
    clock.now, 3 /* state_place_v1 */, NULL, p.capacity, 0, p.n, p.d, p.span,
    p.algorithm = 'sliding_window_counter', held.current, held.start, held.previous, held.start, NULL) AS f;

-- Who may do what. Everything else is the owner's alone.
--   ration_service   the process: runs the decision functions, reads policies, slots and outcomes of operation ids
--   ration_operator  people on duty: what readers see, and upkeep by hand. Policies are changed over HTTP, where they are checked
--   ration_reader    dashboards: reads policies, their history and what every key has used
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ration FROM PUBLIC;
GRANT USAGE ON SCHEMA ration TO ration_service, ration_operator, ration_reader;

GRANT SELECT ON ration.schema_version, ration.policy_set, ration.policy, ration.policy_version, ration.audit, ration.state_loss
    TO ration_service, ration_operator, ration_reader;
GRANT SELECT ON ration.operation, ration.slot_parent, ration.slot TO ration_service;
GRANT SELECT ON ration.bucket_now, ration.window_now, ration.log_now, ration.slot_now
    TO ration_service, ration_operator, ration_reader;
-- Called by the views with the rights of whoever looks.
GRANT EXECUTE ON FUNCTION ration.bucket_key, ration.key_field_v1, ration.key_address_v1, ration.canonical_target_v1,
    ration.fold_case_v1, ration.settled_v1, ration.wait_v1, ration.clock_v1, ration.carry_v1, ration.balance_at_v1,
    ration.window_start_v1, ration.window_at_v1, ration.window_room_v1, ration.window_wait_v1, ration.log_live_v1,
    ration.log_wait_v1, ration.decide_figures_v1, ration.instant_v1
    TO ration_service, ration_operator, ration_reader;

GRANT EXECUTE ON FUNCTION ration.clean_v1, ration.clean_windows_v1, ration.clean_logs_v1, ration.clean_slots_v1,
    ration.clean_slot_parents_v1, ration.clean_operations_v1, ration.recover_v1
    TO ration_service, ration_operator;
GRANT EXECUTE ON FUNCTION ration.take_v1, ration.take_durable_v1, ration.take_new_v1, ration.take_new_durable_v1,
    ration.decide_v1, ration.settle_v1, ration.release_slot_v1, ration.renew_slot_v1, ration.put_policy_v1
    TO ration_service;
