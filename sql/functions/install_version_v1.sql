-- install_version_v1: puts the next version of a policy in force, the first one where there is none. The one home of what a
-- change does to an idle key, and of where what was kept counts no more.
--
-- Arguments: p_content is the stored form; n, d and capacity are its limit in stored units, and are refused where they
--        disagree with it: those of any other algorithm than the token bucket are 1, 1 and its limit. p_balances is the
--        rule by which what is kept is carried over: keep, scale, reset or restart; the last with p_start, full or empty.
--        p_deleted: the version is a tombstone, with which the policy and all that it keeps end. p_parent: the policy of which
--        this one is an override's limit. p_generation is that of the change, p_at its instant.
-- Answers: number, version, and the instant of its installation, never before that of the version before.
--        Idle keys of a first version, or after reset or restart, have spent nothing, or everything (start empty).
-- Units: n in units per microsecond, d in units per token, capacity in tokens, instants in microseconds.
-- Clock: none, the instant is given.
-- Locks: the caller holds the row of ration.policy_set, and bumps its generation.
-- SQLSTATE: RN005 the figures are not those of the content, or out of the bounds of its algorithm, or no such rule for balances,
--           or an id of an override's limit for another policy; 23514 another bound of the table.
CREATE OR REPLACE FUNCTION ration.install_version_v1(
    p_id text, p_content json, p_n bigint, p_d bigint, p_capacity bigint, p_balances text, p_start text, p_deleted boolean,
    p_parent int, p_generation bigint, p_at bigint, OUT o_number int, OUT o_version int, OUT o_installed_at bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_limit     constant json    := p_content -> 'limit';
    v_algorithm constant text    := coalesce(v_limit ->> 'algorithm', 'token_bucket');
    v_strict    constant boolean := coalesce((v_limit ->> 'strict')::boolean, false);
    v_span      constant numeric := 1000000 * CASE v_algorithm WHEN 'token_bucket' THEN 0
                                                                WHEN 'concurrency' THEN (v_limit ->> 'ttlSeconds')::numeric
                                                                ELSE (v_limit ->> 'windowSeconds')::numeric END;
    v_mode      constant text    := CASE WHEN p_deleted THEN 'deleted'
                                         ELSE ration.effective_mode_v1(p_id, coalesce(p_content ->> 'mode', 'enforce')) END;
    v_before    ration.policy_version;
    v_anew      boolean;  -- what was kept before counts no more
    v_units     bigint;
    v_idle      bigint;
    v_idle_at   bigint;
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
    IF (p_balances IN ('keep', 'scale', 'reset', 'restart') AND (p_balances = 'restart') = (p_start IS NOT NULL)
        AND coalesce(p_start, 'full') IN ('full', 'empty')
        AND (v_algorithm = 'token_bucket' OR p_balances <> 'scale')
        AND (v_algorithm <> 'concurrency' OR (p_balances <> 'reset' AND p_start IS DISTINCT FROM 'empty'))) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN005', MESSAGE = 'there is no such rule for the balances of this algorithm';
    END IF;
    IF (strpos(p_id, '!') > 0) <> (p_parent IS NOT NULL) THEN
        RAISE EXCEPTION USING ERRCODE = 'RN005', MESSAGE = 'an id with ! is that of an override''s limit, which changes with its policy';
    END IF;

    SELECT v.* INTO v_before FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version) WHERE p.id = p_id;
    o_number := v_before.number;
    -- An override's limit counts its versions with its policy, whose version it is shown as.
    o_version := coalesce(v_before.version + 1, (SELECT p.version FROM ration.policy AS p WHERE p.number = p_parent), 1);
    o_installed_at := greatest(p_at, v_before.installed_at);
    v_anew := v_before.number IS NULL OR p_balances IN ('reset', 'restart');
    v_units := p_capacity * p_d;
    v_idle := CASE p_start WHEN 'empty' THEN 0 ELSE v_units END;
    v_idle_at := o_installed_at;
    IF v_before.number IS NULL THEN
        INSERT INTO ration.policy (id, version, durability, algorithm, strict, span, mode, n, d, capacity, capacity_units,
                                   idle_balance, idle_at, since, parent, generation)
        VALUES (p_id, o_version, p_content ->> 'durability', v_algorithm, v_strict, v_span, v_mode, p_n, p_d, p_capacity, v_units,
                v_idle, v_idle_at, o_version, p_parent, p_generation)
        RETURNING number INTO o_number;
    END IF;
    INSERT INTO ration.policy_version (number, version, content, n, d, capacity, capacity_units, idle_balance, idle_at, balances,
                                       deleted, installed_at, generation)
    VALUES (o_number, o_version, p_content, p_n, p_d, p_capacity, v_units, v_idle, v_idle_at, p_balances, p_deleted, o_installed_at,
            p_generation);
    IF NOT v_anew THEN
        -- The idle bucket goes through the change as every bucket does. Windows and logs keep what they have counted, so
        -- their idle state keeps what is used of it.
        IF v_algorithm = 'token_bucket' THEN
            SELECT c.o_balance, c.o_at INTO v_idle, v_idle_at
            FROM ration.carry_v1(o_number, v_before.version, o_version, v_before.idle_balance, v_before.idle_at) AS c;
        ELSE
            v_idle := v_units - (v_before.capacity_units - v_before.idle_balance);
            v_idle_at := v_before.idle_at;
        END IF;
        UPDATE ration.policy_version SET idle_balance = v_idle, idle_at = v_idle_at WHERE number = o_number AND version = o_version;
    END IF;
    IF v_before.number IS NOT NULL THEN
        UPDATE ration.policy
        SET version = o_version, durability = p_content ->> 'durability', algorithm = v_algorithm, strict = v_strict, span = v_span,
            mode = v_mode, n = p_n, d = p_d, capacity = p_capacity, capacity_units = v_units, idle_balance = v_idle,
            idle_at = v_idle_at, since = CASE WHEN v_anew OR p_deleted THEN o_version ELSE since END, generation = p_generation
        WHERE number = o_number;
        IF v_anew OR (p_n, p_d, p_capacity) <> (v_before.n, v_before.d, v_before.capacity) THEN
            PERFORM ration.open_sweep_v1(o_number, o_version, o_installed_at);
        END IF;
    END IF;
END $$;
