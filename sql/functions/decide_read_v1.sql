-- decide_read_v1: what the keys of a decide_v1 call hold at an instant, in one statement: each under the policy version in
-- force, carried over every change, with what has been earned or has expired by then. An absent row is an idle key.
--
-- Arguments: cells are the distinct keys of the call with their policies; p_needed says which of them to read.
-- Answers: one entry a cell, NULL where it is not needed or its policy is not of this generation.
--        o_places: where its state is kept (state_place_v1); o_writers: the transaction that wrote its row, NULL where there
--        is none; o_room: what may be charged, in parts of 1/d token; o_base: a bucket's balance in the same parts, else the
--        tokens that count;
--        o_at: the instant of the balance, the start of the window, the newest entry or expiry; o_marks: the instant
--        under which a charge of now is kept; o_logs: the live entries, those of slots with their expiries as instants.
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
BEGIN
    SELECT array_agg(p.place), array_agg(s.writer), array_agg(p.enforced), array_agg(p.version), array_agg(p.capacity),
           array_agg(p.n), array_agg(p.d), array_agg(p.span), array_agg(p.sliding), array_agg(h.room), array_agg(h.base),
           array_agg(h.at), array_agg(h.previous), array_agg(h.mark), array_agg(h.log)
    INTO o_places, o_writers, o_enforced, o_versions, o_capacities, o_n, o_d, o_spans, o_sliding, o_room, o_base, o_at,
         o_previous, o_marks, o_logs
    FROM (SELECT i AS cell FROM generate_series(1, cardinality(p_keys)) AS i ORDER BY 1) AS c
    LEFT JOIN LATERAL (
        SELECT f.number, f.version, f.capacity, f.capacity_units, f.n, f.d, f.idle_balance, f.idle_at, f.mode = 'enforce' AS enforced,
               f.algorithm = 'sliding_window_counter' AND NOT f.strict AS sliding,
               ration.segment_v1(f) AS segment, ration.idle_log_v1(f) AS idle_log,
               CASE WHEN f.algorithm <> 'concurrency' THEN f.span ELSE 0 END AS counted,  -- for so long behind its instant
               f.span, ration.state_place_v1(f.algorithm, f.strict, f.durability) AS place
        FROM ration.policy AS f
        WHERE f.number = p_policies[c.cell] AND f.generation <= p_generation AND p_needed[c.cell] OFFSET 0) AS p ON true
    -- Each branch is run for the cells of its place alone.
    LEFT JOIN LATERAL (
        SELECT b.xmin AS writer, b.version, b.balance AS count, b.at, 0::bigint AS previous, NULL::bigint[] AS entries
        FROM ration.bucket_fast AS b WHERE p.place = 1 AND b.shard = p_shard AND b.key = p_keys[c.cell]
        UNION ALL SELECT b.xmin, b.version, b.balance, b.at, 0, NULL
        FROM ration.bucket_durable AS b WHERE p.place = 2 AND b.shard = p_shard AND b.key = p_keys[c.cell]
        UNION ALL SELECT w.xmin, w.version, w.current, w.start, w.previous, NULL
        FROM ration.window_fast AS w WHERE p.place = 3 AND w.shard = p_shard AND w.key = p_keys[c.cell]
        UNION ALL SELECT w.xmin, w.version, w.current, w.start, w.previous, NULL
        FROM ration.window_durable AS w WHERE p.place = 4 AND w.shard = p_shard AND w.key = p_keys[c.cell]
        UNION ALL SELECT l.xmin, l.version, NULL, NULL, NULL, l.entries
        FROM ration.log_fast AS l WHERE p.place = 5 AND l.shard = p_shard AND l.key = p_keys[c.cell]
        UNION ALL SELECT l.xmin, l.version, NULL, NULL, NULL, l.entries
        FROM ration.log_durable AS l WHERE p.place = 6 AND l.shard = p_shard AND l.key = p_keys[c.cell]
        UNION ALL SELECT o.xmin, NULL, NULL, NULL, NULL, ration.slots_v1(p_shard, p_keys[c.cell], p_now)
        FROM ration.slot_parent AS o WHERE p.place = 7 AND o.shard = p_shard AND o.key = p_keys[c.cell]
        OFFSET 0) AS s ON true
    LEFT JOIN LATERAL (
        SELECT b.settled AS room, b.settled AS base, b.at, 0::bigint AS previous, p_now AS mark, NULL::ration.log_entries AS log
        FROM (SELECT v.at, ration.settled_v1(v.balance, v.at, p_now, p.n, p.capacity_units) AS settled
              FROM (SELECT coalesce(k.carried[1], s.count, p.idle_balance) AS balance,
                           coalesce(k.carried[2], s.at, p.idle_at) AS at
                    -- Not called for rows of the version in force.
                    FROM (SELECT CASE WHEN s.version < p.version THEN (
                                     SELECT ARRAY[y.o_balance, y.o_at]
                                     FROM ration.carry_v1(p.number, s.version, p.version, s.count, s.at) AS y) END AS carried) AS k
                    OFFSET 0) AS v) AS b
        WHERE p.place <= 2
        UNION ALL
        SELECT ration.window_room_v1(p.sliding, w.current, w.previous, greatest(0, p_now - w.start), p.span, p.capacity),
               w.current, w.start, w.previous, w.start, NULL
        FROM ration.window_at_v1(coalesce(s.at, ration.window_start_v1(p.idle_at, p.span)),
                                 coalesce(s.count, p.capacity - p.idle_balance), coalesce(s.previous, 0), p.span, p_now) AS w
        WHERE p.place BETWEEN 3 AND 4
        UNION ALL
        SELECT p.capacity - l.o_used, l.o_used, l.o_live[cardinality(l.o_live) - 1], 0,
               -- A charge stands at its instant, a segment's at the segment's end, a slot's at its expiry; but not before the newest.
               CASE WHEN p.place = 7 THEN p_now + p.span
                    ELSE greatest(ration.log_mark_v1(p_now, p.segment), l.o_live[cardinality(l.o_live) - 1]) END,
               ROW (l.o_live)::ration.log_entries
        FROM ration.log_live_v1(coalesce(s.entries, p.idle_log), p_now - p.counted) AS l
        WHERE p.place >= 5
        OFFSET 0) AS h ON true;
END $$;
