-- decide_read_v1: what the keys of a decide_v1 call hold at an instant: each under the policy version in force, carried over
-- every change, with what has been earned or has expired by then. An absent row is an idle key; so is a row of windows or a
-- log that was written before what the policy keeps began anew.
--
-- Arguments: cells are the distinct keys of the call with their policies; p_needed says which of them to read.
-- Answers: one entry a cell, NULL where it is not needed or its policy is not of this generation.
--        o_places: where its state is kept (state_place_v1); o_rows: where its row is, but for slots; o_writers: the transaction
--        that wrote the row; both NULL where there is none; o_room: what may be charged, in parts of 1/d token; o_base: a
--        bucket's balance in the same parts, else the tokens that count; o_at: the instant of the balance, the start of the
--        window, the newest entry or expiry; o_previous: what the window before counts; o_marks: the instant under which a
--        window or log keeps a charge of now, the expiry of a slot of now; o_logs: the live entries of logs.
-- Units: tokens and parts of 1/d token, microseconds. Clock: none, the instant is given.
-- Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.decide_read_v1(
    p_shard int, p_generation bigint, p_policies int[], p_keys uuid[], p_needed boolean[], p_now bigint,
    OUT o_places int[], OUT o_rows tid[], OUT o_writers xid[], OUT o_enforced boolean[], OUT o_versions int[], OUT o_capacities bigint[],
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
           array_agg(p.span), array_agg(p.sliding), array_agg(s.row), array_agg(s.writer), array_agg(b.settled), array_agg(b.at)
    INTO o_places, o_enforced, o_versions, o_capacities, o_n, o_d, o_spans, o_sliding, o_rows, o_writers, o_room, o_at
    FROM (SELECT i AS cell FROM generate_series(1, cardinality(p_keys)) AS i ORDER BY 1) AS c
    LEFT JOIN LATERAL (
        SELECT f.number, f.version, f.capacity, f.capacity_units, f.n, f.d, f.span, f.idle_balance, f.idle_at,
               f.mode = 'enforce' AS enforced, f.algorithm = 'sliding_window_counter' AND NOT f.strict AS sliding,
               ration.state_place_v1(f.algorithm, f.strict, f.durability) AS place
        FROM ration.policy AS f
        WHERE f.number = p_policies[c.cell] AND f.generation <= p_generation AND p_needed[c.cell] OFFSET 0) AS p ON true
    -- Each branch is run for the cells of its place alone.
    LEFT JOIN LATERAL (
        SELECT f.ctid AS row, f.xmin AS writer, f.version, f.balance, f.at FROM ration.bucket_fast AS f
        WHERE p.place = 1 AND f.shard = p_shard AND f.key = p_keys[c.cell]
        UNION ALL SELECT f.ctid, f.xmin, f.version, f.balance, f.at FROM ration.bucket_durable AS f
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
            SELECT c.cell, s.row, s.writer, w.start, w.current, w.previous,
                   ration.window_room_v1(o_sliding[c.cell], w.current, w.previous, greatest(0, p_now - w.start), p.span, p.capacity) AS room
            FROM (SELECT i AS cell, o_places[i] AS place FROM generate_series(1, cardinality(p_keys)) AS i
                  WHERE o_places[i] BETWEEN 3 AND 4) AS c
            CROSS JOIN LATERAL (SELECT f.* FROM ration.policy AS f WHERE f.number = p_policies[c.cell] OFFSET 0) AS p
            LEFT JOIN LATERAL (
                SELECT f.ctid AS row, f.xmin AS writer, f.version, f.start, f.current, f.previous FROM ration.window_fast AS f
                WHERE c.place = 3 AND f.shard = p_shard AND f.key = p_keys[c.cell]
                UNION ALL SELECT f.ctid, f.xmin, f.version, f.start, f.current, f.previous FROM ration.window_durable AS f
                WHERE c.place = 4 AND f.shard = p_shard AND f.key = p_keys[c.cell] OFFSET 0) AS s ON true
            LEFT JOIN LATERAL (SELECT s.start, s.current, s.previous WHERE s.version >= p.since) AS h ON true
            CROSS JOIN LATERAL ration.window_at_v1(coalesce(h.start, ration.window_start_v1(p.idle_at, p.span)),
                                                   coalesce(h.current, p.capacity - p.idle_balance), coalesce(h.previous, 0),
                                                   p.span, p_now) AS w
        LOOP
            o_rows[r.cell] := r.row;
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
            SELECT c.cell, s.row, s.writer, p.capacity - l.o_used AS room, l.o_used AS used, newest.at,
                   -- A charge stands at its instant, a segment's at the segment's end; but not before the newest.
                   greatest(ration.log_mark_v1(p_now, ration.segment_v1(p.policy)), newest.at) AS mark,
                   ROW (l.o_live)::ration.log_entries AS log
            FROM (SELECT i AS cell, o_places[i] AS place FROM generate_series(1, cardinality(p_keys)) AS i
                  WHERE o_places[i] BETWEEN 5 AND 6) AS c
            CROSS JOIN LATERAL (SELECT f AS policy, f.capacity, f.span, f.since FROM ration.policy AS f
                                WHERE f.number = p_policies[c.cell] OFFSET 0) AS p
            LEFT JOIN LATERAL (
                SELECT f.ctid AS row, f.xmin AS writer, f.version, f.entries FROM ration.log_fast AS f
                WHERE c.place = 5 AND f.shard = p_shard AND f.key = p_keys[c.cell]
                UNION ALL SELECT f.ctid, f.xmin, f.version, f.entries FROM ration.log_durable AS f
                WHERE c.place = 6 AND f.shard = p_shard AND f.key = p_keys[c.cell] OFFSET 0) AS s ON true
            CROSS JOIN LATERAL ration.log_live_v1(CASE WHEN s.version >= p.since THEN s.entries ELSE ration.idle_log_v1(p.policy) END,
                                                  p_now - p.span) AS l
            CROSS JOIN LATERAL (SELECT l.o_live[cardinality(l.o_live) - 1] AS at) AS newest
        LOOP
            o_rows[r.cell] := r.row;
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
