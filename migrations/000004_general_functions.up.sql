-- Decisions on every algorithm and on several policies at once, operation ids, settlement, slots: the functions and views that
-- are new or changed, in the order in which each finds what it needs.

UPDATE ration.schema_version SET minor = 1;

-- ready_v1: whether a call may decide now: isolation level, life of the fast state, generation. False means that the call
-- was matched under another generation.
--
-- Arguments: p_fast says whether the call touches fast state; p_generation NULL fits every generation.
-- Units: none. Clock: none. Locks: none.
-- SQLSTATE: RN001 isolation level other than READ COMMITTED; RN002 the fast state was lost, call recover_v1.
CREATE OR REPLACE FUNCTION ration.ready_v1(p_fast boolean, p_generation bigint)
RETURNS boolean LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_generation bigint;
    v_alive      boolean;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = 'RN001', MESSAGE = 'a decision needs isolation level READ COMMITTED';
    END IF;
    SELECT s.generation, m.incarnation IS NOT NULL INTO v_generation, v_alive
    FROM ration.policy_set AS s LEFT JOIN ration.incarnation_marker AS m ON m.incarnation = s.incarnation;
    IF p_fast AND NOT v_alive THEN
        RAISE EXCEPTION USING ERRCODE = 'RN002', MESSAGE = 'the fast state was lost in a crash: call ration.recover_v1';
    END IF;
    RETURN v_generation = coalesce(p_generation, v_generation);
END $$;

-- guard_v1: what stands before every decision of take_v1 and take_new_v1: the shape of the arguments, then ready_v1.
--
-- Units: counts of callers, costs in tokens.
-- Clock: none. Locks: none.
-- SQLSTATE: RN001 RN002 from ready_v1; RN004 arrays of different length or not counted from 1, none or more than 1,024
--           elements, a cost below 1, a count below 0, NULL for any of them.
CREATE OR REPLACE FUNCTION ration.guard_v1(
    p_fast boolean, p_generation bigint, p_policies int[], p_keys uuid[], p_costs bigint[], p_counts int[])
RETURNS boolean LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_length constant int := cardinality(p_keys);
BEGIN
    -- NULL must never stand for nothing to pay: each condition has to be true, not merely not false.
    IF (p_generation IS NOT NULL AND v_length BETWEEN 1 AND 1024 AND array_upper(p_keys, 1) = v_length
        AND array_upper(p_policies, 1) = v_length AND cardinality(p_policies) = v_length
        AND array_upper(p_costs, 1) = v_length AND cardinality(p_costs) = v_length AND 1 <= ALL (p_costs)
        AND array_upper(p_counts, 1) = v_length AND cardinality(p_counts) = v_length AND 0 <= ALL (p_counts)
        AND array_position(p_policies, NULL) IS NULL AND array_position(p_keys, NULL) IS NULL) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004',
            MESSAGE = 'a call takes 1 to 1024 elements, as many policies, keys, costs >= 1 and counts >= 0';
    END IF;
    RETURN ration.ready_v1(p_fast, p_generation);
END $$;

-- log_charged_v1: a log with a charge more: behind its newest entry, or joined to it when that is of the same instant.
--
-- Arguments: pairs of instant and tokens, ascending by instant; p_at is not before the newest.
-- Units: tokens, microseconds. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.log_charged_v1(p_entries bigint[], p_at bigint, p_tokens bigint)
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    v_length constant int := cardinality(p_entries);
BEGIN
    IF v_length > 0 AND p_entries[v_length - 1] = p_at THEN
        p_entries[v_length] := p_entries[v_length] + p_tokens;
        RETURN p_entries;
    END IF;
    RETURN p_entries || ARRAY[p_at, p_tokens];
END $$;

-- log_live_v1: the part of a log that counts: the entries behind an instant, and what they add up to.
--
-- Arguments: pairs of instant and tokens, ascending by instant.
-- Units: tokens, microseconds. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.log_live_v1(p_entries bigint[], p_behind bigint, OUT o_live bigint[], OUT o_used bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    v_low  int := 0;  -- so many pairs are known not to count
    v_high int := cardinality(p_entries) / 2;
    v_half int;
BEGIN
    WHILE v_low < v_high LOOP
        v_half := (v_low + v_high) / 2;
        IF p_entries[2 * v_half + 1] > p_behind THEN
            v_high := v_half;
        ELSE
            v_low := v_half + 1;
        END IF;
    END LOOP;
    o_live := p_entries[2 * v_low + 1:];
    SELECT coalesce(sum(o_live[2 * i]), 0) INTO o_used FROM generate_series(1, cardinality(o_live) / 2) AS i;
END $$;

-- log_wait_v1: the instant of the entry that has to leave a log, the oldest first, before so many tokens are free.
--
-- Arguments: pairs of instant and tokens, ascending by instant; p_extra tokens more stand at p_extra_at; p_lack is at most
--        what all of them add up to.
-- Units: tokens, microseconds. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.log_wait_v1(p_entries bigint[], p_extra bigint, p_extra_at bigint, p_lack bigint)
RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    v_lack  bigint := p_lack;
    v_extra bigint := p_extra;
BEGIN
    FOR i IN 1 .. cardinality(p_entries) / 2 LOOP
        IF v_extra > 0 AND p_entries[2 * i - 1] > p_extra_at THEN
            v_lack := v_lack - v_extra;
            IF v_lack <= 0 THEN
                RETURN p_extra_at;
            END IF;
            v_extra := 0;
        END IF;
        v_lack := v_lack - p_entries[2 * i];
        IF v_lack <= 0 THEN
            RETURN p_entries[2 * i - 1];
        END IF;
    END LOOP;
    RETURN p_extra_at;
END $$;

-- window_room_v1: what may still be charged in a window at an instant. The one home of the window rules, with
-- window_wait_v1: a fixed window counts what was charged in it; a sliding one adds what was charged in the window before,
-- by the share of it that a window ending now would still reach.
--
-- Arguments: what was charged in this window and in the one before, the microseconds elapsed in it, window, limit.
-- Answers: tokens; below zero when the limit was lowered or a settlement charged more.
-- Units: tokens, microseconds. Clock: none.
-- Locks: none. SQLSTATE: none: counts are at most twice the limit, and a sliding window's limit times its length is below 2^61.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.window_room_v1(
    p_sliding boolean, p_current bigint, p_previous bigint, p_elapsed bigint, p_span bigint, p_limit bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN p_limit - p_current
       - CASE WHEN p_sliding THEN (p_previous * (p_span - p_elapsed) + p_span - 1) / p_span ELSE 0 END;

-- window_wait_v1: how long after its start a window first has room for a cost that it has none for now, if nothing else is
-- charged: later in this window, in the next, where what is charged now weighs as what was charged before, or at the start
-- of the one after.
--
-- Arguments: as window_room_v1; p_cost at most the limit.
-- Units: tokens, microseconds from the window's start. Clock: none.
-- Locks: none. SQLSTATE: none, as window_room_v1.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.window_wait_v1(
    p_sliding boolean, p_current bigint, p_previous bigint, p_span bigint, p_limit bigint, p_cost bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN NOT p_sliding THEN p_span
            WHEN p_previous > 0 AND (p_limit - p_current - p_cost) * p_span >= p_previous
                THEN p_span - (p_limit - p_current - p_cost) * p_span / p_previous
            WHEN p_current > 0 THEN p_span + greatest(0, p_span - (p_limit - p_cost) * p_span / p_current)
            ELSE p_span END;

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
        UPDATE ration.policy_version AS v SET idle_balance = 0, idle_at = greatest(v_now, v.idle_at)
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
            -- Whole microseconds, a millisecond to 366 days.
            AND v_span = trunc(v_span) AND v_span BETWEEN 1000 AND 31622400000000
            AND (v_algorithm <> 'sliding_window_counter' OR p_capacity::numeric * v_span < 2::numeric ^ 61)
            AND (v_algorithm <> 'sliding_window_log' OR p_capacity <= 1000) END) IS NOT TRUE THEN
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
            SELECT greatest(-v_units, v_units - (v_before.capacity_units - v_before.idle_balance)) AS o_balance,
                   v_before.idle_at AS o_at INTO v_idle;
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

-- Who may do what. Everything else is the owner's alone.
--   ration_service   the process: runs the decision functions, reads policies
--   ration_operator  people on duty: what readers see, and upkeep by hand. Policies are changed over HTTP, where they are checked
--   ration_reader    dashboards: reads policies, their history and the buckets
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ration FROM PUBLIC;
GRANT USAGE ON SCHEMA ration TO ration_service, ration_operator, ration_reader;

GRANT SELECT ON ration.schema_version, ration.policy_set, ration.policy, ration.policy_version, ration.audit, ration.state_loss
    TO ration_service, ration_operator, ration_reader;
GRANT SELECT ON ration.bucket_now TO ration_service, ration_operator, ration_reader;
-- Called by the view with the rights of whoever looks.
GRANT EXECUTE ON FUNCTION ration.bucket_key, ration.key_field_v1, ration.key_address_v1, ration.canonical_target_v1,
    ration.fold_case_v1, ration.settled_v1, ration.wait_v1, ration.clock_v1, ration.carry_v1, ration.balance_at_v1
    TO ration_service, ration_operator, ration_reader;

GRANT EXECUTE ON FUNCTION ration.clean_v1, ration.recover_v1 TO ration_service, ration_operator;
GRANT EXECUTE ON FUNCTION ration.take_v1, ration.take_durable_v1, ration.take_new_v1, ration.take_new_durable_v1,
    ration.put_policy_v1
    TO ration_service;
