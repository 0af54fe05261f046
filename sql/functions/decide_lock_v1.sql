-- decide_lock_v1: locks the rows of a decide_v1 call. Absent ones are inserted first, as idle keys; then all are locked in
-- one ascending pass. Inserting before locking, each in the one order of places and keys, is what keeps calls that meet in
-- several rows from waiting for each other in a circle.
--
-- Arguments: cells are the distinct keys of the call; p_wanted says which to lock, p_found which had a row a moment ago,
--        p_places where they are kept (decide_read_v1). p_hold as in decide_v1.
-- Answers: the cells whose rows are locked. One that is missing is held by another session ('skip'), absent ('skip'), was
--        deleted meanwhile, or all are, when another call waits for one of the keys ('alone').
-- Units: none. Clock: none.
-- Locks: 'alone': the transaction's advisory locks on the first 64 bits of the keys, if all are free; then the rows, by place
--        and key.
-- SQLSTATE: 57014 statement_timeout.
CREATE OR REPLACE FUNCTION ration.decide_lock_v1(
    p_shard int, p_hold text, p_wanted boolean[], p_places int[], p_policies int[], p_keys uuid[], p_found boolean[])
RETURNS int[] LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET enable_memoize = off
AS $$
DECLARE
    v_absent int[];  -- places that lack a row
    v_locked int[];
BEGIN
    IF p_hold = 'skip' THEN
        SELECT array_agg(q.cell) INTO v_locked
        FROM (SELECT i AS cell, p_places[i] AS place, p_keys[i] AS key
              FROM generate_series(1, cardinality(p_keys)) AS i WHERE p_wanted[i] ORDER BY 2, 3) AS q
        LEFT JOIN LATERAL (SELECT true AS got FROM ration.bucket_fast AS t
                           WHERE q.place = 1 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l1 ON true
        LEFT JOIN LATERAL (SELECT true AS got FROM ration.bucket_durable AS t
                           WHERE q.place = 2 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l2 ON true
        LEFT JOIN LATERAL (SELECT true AS got FROM ration.window_fast AS t
                           WHERE q.place = 3 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l3 ON true
        LEFT JOIN LATERAL (SELECT true AS got FROM ration.window_durable AS t
                           WHERE q.place = 4 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l4 ON true
        LEFT JOIN LATERAL (SELECT true AS got FROM ration.log_fast AS t
                           WHERE q.place = 5 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l5 ON true
        LEFT JOIN LATERAL (SELECT true AS got FROM ration.log_durable AS t
                           WHERE q.place = 6 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l6 ON true
        LEFT JOIN LATERAL (SELECT true AS got FROM ration.slot_parent AS t
                           WHERE q.place = 7 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l7 ON true
        WHERE coalesce(l1.got, l2.got, l3.got, l4.got, l5.got, l6.got, l7.got);
        RETURN v_locked;
    END IF;
    IF p_hold = 'alone' AND NOT (
        SELECT bool_and(pg_try_advisory_xact_lock(ration.advisory_key_v1(p_keys[i])))
        FROM generate_series(1, cardinality(p_keys)) AS i WHERE p_wanted[i]) THEN
        RETURN NULL;
    END IF;

    SELECT array_agg(DISTINCT p_places[i]) INTO v_absent
    FROM generate_series(1, cardinality(p_keys)) AS i WHERE p_wanted[i] AND NOT p_found[i];
    IF 1 = ANY (v_absent) THEN
        INSERT INTO ration.bucket_fast (balance, at, key, shard, policy, version, took)
        SELECT p.idle_balance, p.idle_at, p_keys[i], p_shard, p.number, p.version, 0
        FROM generate_series(1, cardinality(p_keys)) AS i JOIN ration.policy AS p ON p.number = p_policies[i]
        WHERE p_wanted[i] AND p_places[i] = 1 AND NOT p_found[i] ORDER BY p_keys[i] ON CONFLICT DO NOTHING;
    END IF;
    IF 2 = ANY (v_absent) THEN
        INSERT INTO ration.bucket_durable (balance, at, key, shard, policy, version, took)
        SELECT p.idle_balance, p.idle_at, p_keys[i], p_shard, p.number, p.version, 0
        FROM generate_series(1, cardinality(p_keys)) AS i JOIN ration.policy AS p ON p.number = p_policies[i]
        WHERE p_wanted[i] AND p_places[i] = 2 AND NOT p_found[i] ORDER BY p_keys[i] ON CONFLICT DO NOTHING;
    END IF;
    IF 3 = ANY (v_absent) THEN
        INSERT INTO ration.window_fast (start, current, previous, key, shard, policy, version)
        SELECT p.idle_at - p.idle_at % p.span, p.capacity - p.idle_balance, 0, p_keys[i], p_shard, p.number, p.version
        FROM generate_series(1, cardinality(p_keys)) AS i JOIN ration.policy AS p ON p.number = p_policies[i]
        WHERE p_wanted[i] AND p_places[i] = 3 AND NOT p_found[i] ORDER BY p_keys[i] ON CONFLICT DO NOTHING;
    END IF;
    IF 4 = ANY (v_absent) THEN
        INSERT INTO ration.window_durable (start, current, previous, key, shard, policy, version)
        SELECT p.idle_at - p.idle_at % p.span, p.capacity - p.idle_balance, 0, p_keys[i], p_shard, p.number, p.version
        FROM generate_series(1, cardinality(p_keys)) AS i JOIN ration.policy AS p ON p.number = p_policies[i]
        WHERE p_wanted[i] AND p_places[i] = 4 AND NOT p_found[i] ORDER BY p_keys[i] ON CONFLICT DO NOTHING;
    END IF;
    IF 5 = ANY (v_absent) THEN
        INSERT INTO ration.log_fast (key, shard, policy, version, entries)
        SELECT p_keys[i], p_shard, p.number, p.version, ration.idle_log_v1(p)
        FROM generate_series(1, cardinality(p_keys)) AS i JOIN ration.policy AS p ON p.number = p_policies[i]
        WHERE p_wanted[i] AND p_places[i] = 5 AND NOT p_found[i] ORDER BY p_keys[i] ON CONFLICT DO NOTHING;
    END IF;
    IF 6 = ANY (v_absent) THEN
        INSERT INTO ration.log_durable (key, shard, policy, version, entries)
        SELECT p_keys[i], p_shard, p.number, p.version, ration.idle_log_v1(p)
        FROM generate_series(1, cardinality(p_keys)) AS i JOIN ration.policy AS p ON p.number = p_policies[i]
        WHERE p_wanted[i] AND p_places[i] = 6 AND NOT p_found[i] ORDER BY p_keys[i] ON CONFLICT DO NOTHING;
    END IF;
    IF 7 = ANY (v_absent) THEN
        INSERT INTO ration.slot_parent (key, shard, policy)
        SELECT p_keys[i], p_shard, p_policies[i]
        FROM generate_series(1, cardinality(p_keys)) AS i
        WHERE p_wanted[i] AND p_places[i] = 7 AND NOT p_found[i] ORDER BY p_keys[i] ON CONFLICT DO NOTHING;
    END IF;

    SELECT array_agg(q.cell) INTO v_locked
    FROM (SELECT i AS cell, p_places[i] AS place, p_keys[i] AS key
          FROM generate_series(1, cardinality(p_keys)) AS i WHERE p_wanted[i] ORDER BY 2, 3) AS q
    LEFT JOIN LATERAL (SELECT true AS got FROM ration.bucket_fast AS t
                       WHERE q.place = 1 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS l1 ON true
    LEFT JOIN LATERAL (SELECT true AS got FROM ration.bucket_durable AS t
                       WHERE q.place = 2 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS l2 ON true
    LEFT JOIN LATERAL (SELECT true AS got FROM ration.window_fast AS t
                       WHERE q.place = 3 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS l3 ON true
    LEFT JOIN LATERAL (SELECT true AS got FROM ration.window_durable AS t
                       WHERE q.place = 4 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS l4 ON true
    LEFT JOIN LATERAL (SELECT true AS got FROM ration.log_fast AS t
                       WHERE q.place = 5 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS l5 ON true
    LEFT JOIN LATERAL (SELECT true AS got FROM ration.log_durable AS t
                       WHERE q.place = 6 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS l6 ON true
    LEFT JOIN LATERAL (SELECT true AS got FROM ration.slot_parent AS t
                       WHERE q.place = 7 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS l7 ON true
    WHERE coalesce(l1.got, l2.got, l3.got, l4.got, l5.got, l6.got, l7.got);
    RETURN v_locked;
END $$;
