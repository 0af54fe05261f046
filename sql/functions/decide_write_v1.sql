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
    v_charged  int;
    v_over     boolean;
    v_sweeping boolean;
    v_rows     int;
    v_wrote    int := 0;
BEGIN
    SELECT count(*) FILTER (WHERE p_places[u.cell] < 7), bool_or(p_left[u.cell] < 0), EXISTS (SELECT FROM ration.sweep)
    INTO v_charged, v_over, v_sweeping
    FROM generate_series(1, cardinality(p_left)) AS u (cell) WHERE p_left[u.cell] < p_room[u.cell];
    IF v_sweeping THEN
        -- Before they are written: what a row was under its older version is not to be seen behind that.
        PERFORM ration.append_carried_v1(array_agg(t.policy), array_agg(t.version), array_agg(t.now), array_agg(t.clamped))
        FROM (SELECT u.cell, u.at, p_places[u.cell] AS place, p_versions[u.cell] AS version FROM unnest(p_cells, p_rows) AS u (cell, at)
              WHERE p_left[u.cell] < p_room[u.cell] OFFSET 0) AS q
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
