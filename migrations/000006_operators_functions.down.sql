-- The functions of the versions before.

UPDATE ration.schema_version SET minor = 1;

REVOKE SELECT ON ration.audit_head FROM ration_service, ration_operator, ration_reader;
REVOKE SELECT ON ration.shadow_total, ration.shadow_denial FROM ration_service, ration_operator;
REVOKE SELECT ON ration.token FROM ration_service;
REVOKE SELECT (id, name, role, scope, created_at, created_by, expires_at, revoked_at) ON ration.token FROM ration_operator;
REVOKE SELECT ON ration.override, ration.kill_switch FROM ration_service;

DROP TRIGGER audit_chain ON ration.audit;
DROP TRIGGER audit_refuse ON ration.audit;
DROP TRIGGER audit_refuse ON ration.audit_head;
DELETE FROM ration.audit_head;
ALTER TABLE ration.audit ALTER COLUMN previous DROP NOT NULL, ALTER COLUMN hash DROP NOT NULL, ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY;
SELECT setval(pg_get_serial_sequence('ration.audit', 'id'), coalesce(max(a.id), 0) + 1, false) FROM ration.audit AS a;

DROP VIEW ration.bucket_now;

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

DROP FUNCTION ration.balance_at_v1, ration.put_policy_v1, ration.decide_write_v1, ration.sweep_v1, ration.sweep_stretch_v1,
    ration.revoke_token_v1, ration.reset_bucket_v1, ration.report_shadow_v1, ration.remove_override_v1,
    ration.remove_kill_switch_v1, ration.rebase_v1, ration.put_override_v1, ration.put_kill_switch_v1,
    ration.policy_keys_v1, ration.override_key_v1, ration.log_rebased_v1, ration.locate_key_v1, ration.leave_v1,
    ration.key_figures_v1, ration.decide_read_v1, ration.instances_v1, ration.hindering_overrides_v1, ration.expire_v1,
    ration.dry_run_v1, ration.state_table_v1, ration.delete_policy_v1, ration.follow_overrides_v1,
    ration.override_json_v1, ration.override_content_v1, ration.end_overrides_v1, ration.install_version_v1,
    ration.open_sweep_v1, ration.drain_v1, ration.carry_v1, ration.decide_new_v1, ration.create_token_v1,
    ration.converted_v1, ration.floor_div_v1, ration.confirm_v1, ration.commit_lazily_v1, ration.close_sweep_v1,
    ration.clean_shadow_v1, ration.clean_instances_v1, ration.clamped_v1, ration.audit_verify_v1,
    ration.audit_refuse_v1, ration.audit_chain_v1, ration.audit_hash_v1, ration.apply_kill_switch_v1,
    ration.effective_mode_v1, ration.append_carried_v1;

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
