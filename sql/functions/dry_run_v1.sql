-- dry_run_v1: what a change would do to the balances that a policy's keys have now. It reads without locks and changes nothing.
--
-- Arguments: the shard; the policy's id; the stored form of the version that would be installed, with its d and capacity, and
--        what it says of balances, as in install_version_v1; for how long to count: it stops behind that.
-- Answers: how many balances are stored and count; of these, how many the change would cut to its capacity, and how many could
--        pay the default cost of a call now and could not behind the change; o_at_least: there may be more of each.
-- Units: d in units per token, capacity in tokens, microseconds.
-- Clock: clock_timestamp() once, or p_now on a test clock; how long it counts is by clock_timestamp() always.
-- Locks: none.
-- SQLSTATE: RN001 RN002 from ready_v1, RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.dry_run_v1(
    p_shard int, p_id text, p_content json, p_d bigint, p_capacity bigint, p_balances text, p_start text, p_long bigint,
    p_now bigint DEFAULT NULL, OUT o_live bigint, OUT o_clamped bigint, OUT o_denied bigint, OUT o_at_least boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Whether analysed or not: the rows of a stretch, and what each of them needs.
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $$
DECLARE
    c_rows  constant int         := 10000;  -- examined at once: a few ten milliseconds' worth
    v_end   constant timestamptz := clock_timestamp() + p_long * interval '1 microsecond';
    v_now   constant bigint      := ration.clock_v1(p_now);
    v_cost  constant bigint      := coalesce((p_content -> 'costs' ->> 'default')::bigint, 1);
    v_number         int;
    v_place          int;
    v_table          text;
    v_before         bigint;  -- the default cost of the version in force
    v_room           text;    -- what is left of a row now, in parts of 1/d token
    v_after          text;    -- and what would be left behind the change
    v_clamped        text;    -- whether the change cuts it
    v_counted        record;
    v_last           uuid;
    s                record;
BEGIN
    o_live := 0;
    o_clamped := 0;
    o_denied := 0;
    o_at_least := false;
    SELECT p.number, ration.state_place_v1(p.algorithm, p.strict, p.durability), coalesce((v.content -> 'costs' ->> 'default')::bigint, 1)
    INTO v_number, v_place, v_before
    FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version) WHERE p.id = p_id AND p.mode <> 'deleted';
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_table := ration.state_table_v1(v_place);
    PERFORM ration.ready_v1(v_place IN (1, 3, 5), NULL);
    v_room := CASE
        WHEN v_place <= 2 THEN 'CASE WHEN t.version = p.version THEN ration.settled_v1(t.balance, t.at, $4, p.n, p.capacity_units)
                                     ELSE ration.balance_at_v1(p.number, t.version, t.balance, t.at, $4) END'
        WHEN v_place <= 4 THEN '(SELECT ration.window_room_v1(p.algorithm = ''sliding_window_counter'', w.current, w.previous,
                                                              greatest(0, $4 - w.start), p.span, p.capacity)
                                 FROM ration.window_at_v1(t.start, t.current, t.previous, p.span, $4) AS w)'
        WHEN v_place <= 6 THEN 'p.capacity - (SELECT l.o_used FROM ration.log_live_v1(t.entries, $4 - p.span) AS l)'
        ELSE 'p.capacity - (SELECT coalesce(sum(f.cost), 0) FROM ration.slot AS f
                            WHERE f.shard = t.shard AND f.key = t.key AND f.expires_at > $4)' END;
    v_after := CASE
        WHEN p_start = 'empty' THEN '0'
        WHEN v_place = 7 AND p_content -> 'limit' ->> 'algorithm' = 'concurrency' THEN 'held.room - p.capacity + $7'  -- slots live on
        WHEN p_balances IN ('reset', 'restart') THEN '$6::bigint * $7'
        WHEN v_place <= 2 THEN 'ration.converted_v1($5, held.room, p.d, p.capacity_units, $6, $6 * $7)'
        ELSE 'held.room - p.capacity + $7' END;
    v_clamped := CASE WHEN v_place <= 2 THEN 'next.room <> ration.clamped_v1(next.room, $6 * $7)' ELSE 'false' END;

    LOOP
        s := ration.stretch_v1(v_table, 'key', p_shard, v_last, c_rows);
        EXECUTE format('
            SELECT count(*) AS live, count(*) FILTER (WHERE %s) AS clamped,
                   count(*) FILTER (WHERE held.room >= $8::numeric * p.d AND $8 <= p.capacity
                                      AND NOT (next.room >= $9::numeric * $6 AND $9 <= $7)) AS denied
            FROM ration.policy AS p
            JOIN ration.%I AS t ON t.policy = p.number
            CROSS JOIN LATERAL (SELECT %s AS room OFFSET 0) AS held
            CROSS JOIN LATERAL (SELECT %s AS room OFFSET 0) AS next
            WHERE p.number = $10 AND t.shard = $1 AND t.key > $2 AND t.key <= $3 AND %s',
            v_clamped, v_table, v_room, v_after, CASE WHEN v_place < 7 THEN 't.version >= p.since' ELSE 'true' END)
            INTO v_counted
            USING p_shard, s.o_after, s.o_until, v_now, p_balances, p_d, p_capacity, v_before, v_cost, v_number;
        o_live := o_live + v_counted.live;
        o_clamped := o_clamped + v_counted.clamped;
        o_denied := o_denied + v_counted.denied;
        v_last := s.o_last;
        o_at_least := v_last IS NOT NULL AND clock_timestamp() >= v_end;
        EXIT WHEN v_last IS NULL OR o_at_least;
    END LOOP;
END $$;
