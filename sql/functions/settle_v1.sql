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
