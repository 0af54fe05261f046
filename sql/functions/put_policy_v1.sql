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
            -- Whole microseconds, a millisecond to 366 days. Package policy has the same bounds, and says which is missed.
            AND v_span = trunc(v_span) AND v_span BETWEEN 1000 AND 31622400000000
            AND (v_algorithm <> 'sliding_window_counter' OR p_capacity::numeric * v_span < 2::numeric ^ 61)
            AND (v_algorithm <> 'sliding_window_log' OR p_capacity <= 1000)
            AND (v_algorithm <> 'concurrency' OR p_capacity <= 10000) END) IS NOT TRUE THEN
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
            SELECT v_units - (v_before.capacity_units - v_before.idle_balance) AS o_balance, v_before.idle_at AS o_at INTO v_idle;
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
