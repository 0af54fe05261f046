-- decide_v1: the general path: decides claims, each on any number of policies of any algorithm, all or nothing, in the order
-- in which they stand; with operation ids, which replay what was decided before, and slots.
--
-- A first look reads every key without locks and decides everything. That stands for claims which an enforced policy denies
-- and for peeks, unless a claim before them charges one of their keys: they write nothing. What is left has its rows locked.
-- If these still hold what the first look saw, its decisions stand too; else they are read anew, by a new statement, since
-- one that waited for a lock still sees the other tables as they were, and decided again. With p_hold 'try' rows are written
-- where they were seen, without being locked before: nearly always nobody else has written them in between.
--
-- Arguments, by claim: p_operations names its operation id, NULL where it has none; p_contents the fingerprint of its
--        request, p_stated its stated cost, 0 for none; p_peeks whether it only asks.
--        By key: p_policies and p_keys, ascending, each key once.
--        By check: p_claims the claim (from 1, ascending), p_cells which of p_keys is its key (from 1), p_costs what it asks,
--        p_priced whether that is the request's own cost, which a settlement replaces. A claim without checks has an
--        operation id, and is only looked up.
--        p_retention: how long outcomes of operation ids are kept at least. p_hold: what to do about rows that others hold:
--        'wait' waits for them, until statement_timeout; 'try' does too, and where one was written since the first look, or a
--        change is being swept, charges nothing and answers 0 to all that was to be charged: ask again with 'wait'; 'skip'
--        leaves them out and inserts nothing (an uncommitted insert of another session cannot be skipped); 'alone', with one
--        claim, waits, but only if no other call waits so for its keys.
-- Answers: o_stale, true when the policy set in force is not that of p_generation: then nothing was decided. Else by claim
--        o_status: 0 again (a row was written or deleted meanwhile, or left out by the hold, or the policy changed), 1 decided,
--        2 replayed, 3 the operation id belongs to another request, 4 another call decides the same operation id at this
--        moment, 5 another session holds a row of it, 6 no checks and nothing stored; nothing was charged but under 1.
--        o_allowed, and o_at, the instant of the decision. By part, in the order of claims and checks: o_claim, o_policy,
--        o_version, o_admitted (this policy alone allows it), o_remaining, o_retry_after (0 when admitted, -1 never),
--        o_reset_after, o_slot and o_slot_expires, o_cost (what was charged, 0 for nothing).
-- Units: tokens, microseconds; waits are counted from o_at.
-- Clock: clock_timestamp() before the first look, and again behind the locks where rows changed meanwhile; p_now on a test
--        clock.
-- Locks: advisory locks on operation ids, tried and never waited for; then the rows of claims that may be allowed, by
--        decide_lock_v1, or those that are charged, by decide_write_v1: in the same order, by place and key.
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
    w           record;            -- the rows, as decide_write_v1 leaves them
    v_at        tid[] := array_fill(NULL::tid, ARRAY[v_keys]);        -- by key: where the row is that is written
    v_wrote     boolean;           -- everything was written without locks before it; NULL: it was not tried
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
    IF v_operating AND NOT ration.decide_new_v1(p_shard, p_operations) THEN
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
            IF p_hold = 'try' AND array_position(s.o_rows, NULL) IS NULL THEN
                w := ration.decide_write_v1(o_now, s.o_rows, s.o_writers, s.o_places, s.o_versions, s.o_room, v_room, s.o_base,
                                            s.o_at, s.o_previous, s.o_marks, s.o_logs);
                v_wrote := w.o_all;
                IF NOT v_wrote AND w.o_cells IS NOT NULL THEN
                    -- What was written is taken back, whatever has changed meanwhile. The rest is not locked here: it would be
                    -- out of turn.
                    FOR i IN 1 .. cardinality(w.o_cells) LOOP
                        v_at[w.o_cells[i]] := w.o_rows[i];
                    END LOOP;
                    PERFORM ration.decide_write_v1(o_now, v_at, NULL, s.o_places, s.o_versions, s.o_room, s.o_room, s.o_base,
                                                   s.o_at, s.o_previous, s.o_marks, s.o_logs, true);
                END IF;
            ELSE
                l := ration.decide_lock_v1(p_shard, p_hold, v_wanted, s.o_places, p_policies, p_keys, s.o_writers);
                v_stands := l.o_same;
                v_locked := true;
            END IF;
            FOR i IN 1 .. v_claims LOOP
                CONTINUE WHEN NOT v_pends[i];
                IF v_wrote IS FALSE THEN
                    o_status[i] := 0;
                    o_allowed[i] := false;
                ELSE
                    v_tells[i] := v_stands;
                END IF;
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
    IF v_wrote IS NULL AND true = ANY (v_pays) THEN
        v_at := s.o_rows;
        IF array_position(v_at, NULL) IS NOT NULL THEN
            FOR i IN 1 .. cardinality(l.o_cells) LOOP
                v_at[l.o_cells[i]] := l.o_rows[i];
            END LOOP;
        END IF;
        w := ration.decide_write_v1(o_now, v_at, NULL, s.o_places, s.o_versions, s.o_room, v_room, s.o_base, s.o_at,
                                    s.o_previous, s.o_marks, s.o_logs);
        IF NOT w.o_all THEN
            RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a key occurs twice';
        END IF;
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
                                    u.slot_expires)::ration.operation_part) AS parts
              FROM (SELECT * FROM unnest(v_of, o_claim, o_policy, o_version, o_admitted, o_remaining, o_retry_after, o_reset_after,
                                         o_slot, o_slot_expires, o_cost)
                             AS f (of, claim, policy, version, admitted, remaining, retry_after, reset_after, slot, slot_expires, cost)
                    WHERE f.of > 0 AND p_operations[f.claim] IS NOT NULL ORDER BY f.claim, f.of) AS u
              GROUP BY u.claim) AS c;
    END IF;
    IF v_operating OR (true = ANY (v_pays) AND s.o_places && ARRAY[2, 4, 6, 7] /* the logged ones */) THEN
        PERFORM ration.commit_durably_v1();
    END IF;
END $$;
