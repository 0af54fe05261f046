-- decide_lock_v1: locks the rows of a decide_v1 call. Absent ones are inserted first, as idle keys; then all are locked in
-- one ascending pass. Inserting before locking, each in the one order of places and keys, is what keeps calls that meet in
-- several rows from waiting for each other in a circle.
--
-- Arguments: cells are the distinct keys of the call; p_wanted says which to lock; p_places and p_writers are as
--        decide_read_v1 found them a moment ago. p_hold as in decide_v1.
-- Answers: o_cells: those whose rows are locked; o_rows: by entry of o_cells, where its row is now, for decide_write_v1. A cell
--        that is missing is held by another session ('skip'), absent ('skip'), was deleted meanwhile, or all are, when another
--        call waits for one of the keys ('alone'). o_same: all are locked, and hold what decide_read_v1 found there. Of slots
--        that is not known: they change without their parent's row.
-- Units: none. Clock: none.
-- Locks: 'alone': the transaction's advisory locks on the first 64 bits of the keys, if all are free; then the rows, by place
--        (state_place_v1) and key. Where that stands among other locks: docs/internals/architecture.md.
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

    -- A policy whose state has another place since it was read is left out: its call decides nothing.
    IF 1 = ANY (v_absent) THEN
        INSERT INTO ration.bucket_fast (balance, at, key, shard, policy, version, took)
        SELECT p.idle_balance, p.idle_at, p_keys[u.cell], p_shard, p.number, p.version, 0
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 1 AND p_writers[u.cell] IS NULL
          AND ration.state_place_v1(p.algorithm, p.strict, p.durability) = 1 ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 2 = ANY (v_absent) THEN
        INSERT INTO ration.bucket_durable (balance, at, key, shard, policy, version, took)
        SELECT p.idle_balance, p.idle_at, p_keys[u.cell], p_shard, p.number, p.version, 0
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 2 AND p_writers[u.cell] IS NULL
          AND ration.state_place_v1(p.algorithm, p.strict, p.durability) = 2 ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 3 = ANY (v_absent) THEN
        INSERT INTO ration.window_fast (start, current, previous, key, shard, policy, version)
        SELECT ration.window_start_v1(p.idle_at, p.span), p.capacity - p.idle_balance, 0, p_keys[u.cell], p_shard, p.number, p.version
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 3 AND p_writers[u.cell] IS NULL
          AND ration.state_place_v1(p.algorithm, p.strict, p.durability) = 3 ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 4 = ANY (v_absent) THEN
        INSERT INTO ration.window_durable (start, current, previous, key, shard, policy, version)
        SELECT ration.window_start_v1(p.idle_at, p.span), p.capacity - p.idle_balance, 0, p_keys[u.cell], p_shard, p.number, p.version
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 4 AND p_writers[u.cell] IS NULL
          AND ration.state_place_v1(p.algorithm, p.strict, p.durability) = 4 ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 5 = ANY (v_absent) THEN
        INSERT INTO ration.log_fast (key, shard, policy, version, entries)
        SELECT p_keys[u.cell], p_shard, p.number, p.version, ration.idle_log_v1(p)
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 5 AND p_writers[u.cell] IS NULL
          AND ration.state_place_v1(p.algorithm, p.strict, p.durability) = 5 ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 6 = ANY (v_absent) THEN
        INSERT INTO ration.log_durable (key, shard, policy, version, entries)
        SELECT p_keys[u.cell], p_shard, p.number, p.version, ration.idle_log_v1(p)
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 6 AND p_writers[u.cell] IS NULL
          AND ration.state_place_v1(p.algorithm, p.strict, p.durability) = 6 ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 7 = ANY (v_absent) THEN
        INSERT INTO ration.slot_parent (key, shard, policy)
        SELECT p_keys[u.cell], p_shard, p.number
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 7 AND p_writers[u.cell] IS NULL
          AND ration.state_place_v1(p.algorithm, p.strict, p.durability) = 7 ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
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
