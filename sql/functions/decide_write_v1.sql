-- decide_write_v1: writes what a decide_v1 call charged: each changed row once.
--
-- Arguments: by cell, figures as decide_read_v1 gives them; p_left is what is left of p_room when all is charged. p_writers:
--        who wrote each row last; one that somebody else wrote since, or that is not there any more, is left as it is. NULL: the
--        rows are locked. p_undo: each row in p_rows is written as decide_read_v1 found it. Slots are inserted by decide_v1.
-- Answers: o_all, whether every row that is charged was written: none is while a change is being swept, unless the rows are
--        locked, since what is settled of it is counted; o_cells, those whose rows were, and o_rows, where these are now.
-- Units: tokens and parts of 1/d token, microseconds. Clock: none, the instant is given.
-- Locks: the rows that it writes, by place and in the order of cells.
-- SQLSTATE: RN004 more was charged than there was room for: a claim asks a key twice.
CREATE OR REPLACE FUNCTION ration.decide_write_v1(
    p_now bigint, p_rows tid[], p_writers xid[], p_places int[], p_versions int[], p_room bigint[], p_left bigint[], p_base bigint[],
    p_at bigint[], p_previous bigint[], p_marks bigint[], p_logs ration.log_entries[],
    p_undo boolean DEFAULT false, OUT o_all boolean, OUT o_cells int[], OUT o_rows tid[])
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET enable_memoize = off
AS $$
DECLARE
    v_changed  int;
    v_over     boolean;
    v_sweeping boolean;
BEGIN
    SELECT count(*) FILTER (WHERE p_places[i] < 7), bool_or(p_left[i] < 0), EXISTS (SELECT FROM ration.sweep) AND NOT p_undo
    INTO v_changed, v_over, v_sweeping
    FROM generate_series(1, cardinality(p_left)) AS i WHERE p_left[i] < p_room[i] OR (p_undo AND p_rows[i] IS NOT NULL);
    IF v_over THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'more is charged than there is room for: a claim asks a key twice';
    END IF;
    IF v_sweeping AND p_writers IS NOT NULL THEN
        o_all := false;
        RETURN;
    END IF;
    IF v_sweeping THEN
        PERFORM ration.commit_lazily_v1();  -- decide_v1 has the last word
        -- Before they are written: what a row was under its older version is not to be seen behind that.
        PERFORM ration.append_carried_v1(array_agg(t.policy), array_agg(t.version), array_agg(t.now), array_agg(t.clamped))
        FROM (SELECT p_rows[i] AS at, p_places[i] AS place, p_versions[i] AS version FROM generate_series(1, cardinality(p_rows)) AS i
              WHERE p_left[i] < p_room[i] OFFSET 0) AS q
        CROSS JOIN LATERAL (
            SELECT f.policy, f.version, q.version AS now, c.o_clamped AS clamped
            FROM ration.bucket_fast AS f, ration.carry_v1(f.policy, f.version, q.version, f.balance, f.at) AS c
            WHERE q.place = 1 AND f.ctid = q.at AND f.version < q.version
            UNION ALL SELECT f.policy, f.version, q.version, c.o_clamped
            FROM ration.bucket_durable AS f, ration.carry_v1(f.policy, f.version, q.version, f.balance, f.at) AS c
            WHERE q.place = 2 AND f.ctid = q.at AND f.version < q.version
            UNION ALL SELECT f.policy, f.version, q.version, false FROM ration.window_fast AS f
            WHERE q.place = 3 AND f.ctid = q.at AND f.version < q.version
            UNION ALL SELECT f.policy, f.version, q.version, false FROM ration.window_durable AS f
            WHERE q.place = 4 AND f.ctid = q.at AND f.version < q.version
            UNION ALL SELECT f.policy, f.version, q.version, false FROM ration.log_fast AS f
            WHERE q.place = 5 AND f.ctid = q.at AND f.version < q.version
            UNION ALL SELECT f.policy, f.version, q.version, false FROM ration.log_durable AS f
            WHERE q.place = 6 AND f.ctid = q.at AND f.version < q.version OFFSET 0) AS t;
    END IF;
    IF 1 = ANY (p_places) THEN
        WITH wrote AS (
            UPDATE ration.bucket_fast AS t
            SET balance = p_base[q.cell] - (p_room[q.cell] - p_left[q.cell]), at = greatest(p_at[q.cell], p_now),
                version = p_versions[q.cell], took = 1
            FROM (SELECT i AS cell, p_rows[i] AS row, p_writers[i] AS writer FROM generate_series(1, cardinality(p_rows)) AS i
                  WHERE p_places[i] = 1 AND p_rows[i] IS NOT NULL AND (p_undo OR p_left[i] < p_room[i]) OFFSET 0) AS q
            WHERE t.ctid = q.row AND (q.writer IS NULL OR t.xmin = q.writer)
            RETURNING q.cell, t.ctid AS row)
        SELECT o_cells || array_agg(w.cell), o_rows || array_agg(w.row) INTO o_cells, o_rows FROM wrote AS w;
    END IF;
    IF 2 = ANY (p_places) THEN
        WITH wrote AS (
            UPDATE ration.bucket_durable AS t
            SET balance = p_base[q.cell] - (p_room[q.cell] - p_left[q.cell]), at = greatest(p_at[q.cell], p_now),
                version = p_versions[q.cell], took = 1
            FROM (SELECT i AS cell, p_rows[i] AS row, p_writers[i] AS writer FROM generate_series(1, cardinality(p_rows)) AS i
                  WHERE p_places[i] = 2 AND p_rows[i] IS NOT NULL AND (p_undo OR p_left[i] < p_room[i]) OFFSET 0) AS q
            WHERE t.ctid = q.row AND (q.writer IS NULL OR t.xmin = q.writer)
            RETURNING q.cell, t.ctid AS row)
        SELECT o_cells || array_agg(w.cell), o_rows || array_agg(w.row) INTO o_cells, o_rows FROM wrote AS w;
    END IF;
    IF 3 = ANY (p_places) THEN
        WITH wrote AS (
            UPDATE ration.window_fast AS t
            SET start = p_at[q.cell], current = p_base[q.cell] + p_room[q.cell] - p_left[q.cell], previous = p_previous[q.cell],
                version = p_versions[q.cell]
            FROM (SELECT i AS cell, p_rows[i] AS row, p_writers[i] AS writer FROM generate_series(1, cardinality(p_rows)) AS i
                  WHERE p_places[i] = 3 AND p_rows[i] IS NOT NULL AND (p_undo OR p_left[i] < p_room[i]) OFFSET 0) AS q
            WHERE t.ctid = q.row AND (q.writer IS NULL OR t.xmin = q.writer)
            RETURNING q.cell, t.ctid AS row)
        SELECT o_cells || array_agg(w.cell), o_rows || array_agg(w.row) INTO o_cells, o_rows FROM wrote AS w;
    END IF;
    IF 4 = ANY (p_places) THEN
        WITH wrote AS (
            UPDATE ration.window_durable AS t
            SET start = p_at[q.cell], current = p_base[q.cell] + p_room[q.cell] - p_left[q.cell], previous = p_previous[q.cell],
                version = p_versions[q.cell]
            FROM (SELECT i AS cell, p_rows[i] AS row, p_writers[i] AS writer FROM generate_series(1, cardinality(p_rows)) AS i
                  WHERE p_places[i] = 4 AND p_rows[i] IS NOT NULL AND (p_undo OR p_left[i] < p_room[i]) OFFSET 0) AS q
            WHERE t.ctid = q.row AND (q.writer IS NULL OR t.xmin = q.writer)
            RETURNING q.cell, t.ctid AS row)
        SELECT o_cells || array_agg(w.cell), o_rows || array_agg(w.row) INTO o_cells, o_rows FROM wrote AS w;
    END IF;
    IF 5 = ANY (p_places) THEN
        WITH wrote AS (
            UPDATE ration.log_fast AS t
            SET entries = CASE WHEN p_undo THEN (p_logs[q.cell]).entries ELSE
                    ration.log_charged_v1((p_logs[q.cell]).entries, p_marks[q.cell], p_room[q.cell] - p_left[q.cell]) END,
                version = p_versions[q.cell]
            FROM (SELECT i AS cell, p_rows[i] AS row, p_writers[i] AS writer FROM generate_series(1, cardinality(p_rows)) AS i
                  WHERE p_places[i] = 5 AND p_rows[i] IS NOT NULL AND (p_undo OR p_left[i] < p_room[i]) OFFSET 0) AS q
            WHERE t.ctid = q.row AND (q.writer IS NULL OR t.xmin = q.writer)
            RETURNING q.cell, t.ctid AS row)
        SELECT o_cells || array_agg(w.cell), o_rows || array_agg(w.row) INTO o_cells, o_rows FROM wrote AS w;
    END IF;
    IF 6 = ANY (p_places) THEN
        WITH wrote AS (
            UPDATE ration.log_durable AS t
            SET entries = CASE WHEN p_undo THEN (p_logs[q.cell]).entries ELSE
                    ration.log_charged_v1((p_logs[q.cell]).entries, p_marks[q.cell], p_room[q.cell] - p_left[q.cell]) END,
                version = p_versions[q.cell]
            FROM (SELECT i AS cell, p_rows[i] AS row, p_writers[i] AS writer FROM generate_series(1, cardinality(p_rows)) AS i
                  WHERE p_places[i] = 6 AND p_rows[i] IS NOT NULL AND (p_undo OR p_left[i] < p_room[i]) OFFSET 0) AS q
            WHERE t.ctid = q.row AND (q.writer IS NULL OR t.xmin = q.writer)
            RETURNING q.cell, t.ctid AS row)
        SELECT o_cells || array_agg(w.cell), o_rows || array_agg(w.row) INTO o_cells, o_rows FROM wrote AS w;
    END IF;
    o_all := coalesce(cardinality(o_cells), 0) = v_changed;
END $$;
