-- expire_v1: ends the overrides and kill switches whose time is over, with an audit row each. Every instance calls it once a
-- second.
--
-- Answers: how many ended: all kill switches that are due, but 200 overrides at most, those first that are due for longest. Each
--        is a row of the audit, and the rows that one transaction adds to the chain take the longer the more they are: nobody
--        who changes a policy should wait for that. It is called again until it answers 0.
-- Units: none. Clock: clock_timestamp(), or p_now on a test clock.
-- Locks: none where nothing is due; else the row of ration.policy_set, first, then the buckets of the overrides.
-- SQLSTATE: RN003 from clock_v1; 57014 statement_timeout.
CREATE OR REPLACE FUNCTION ration.expire_v1(p_now bigint DEFAULT NULL)
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c_overrides_max constant int := 200;
    v_now           constant bigint := ration.clock_v1(p_now);
    v_generation    bigint;
    v_overrides     ration.override[];
    v_shown         json[];  -- these, for the audit
    v_prefixes      text[];
BEGIN
    IF NOT EXISTS (SELECT FROM ration.override AS o WHERE o.expires_at <= v_now)
       AND NOT EXISTS (SELECT FROM ration.kill_switch AS k WHERE k.expires_at <= v_now) THEN
        RETURN 0;
    END IF;
    SELECT s.generation + 1 INTO v_generation FROM ration.policy_set AS s FOR UPDATE;
    -- A new statement sees what another instance has ended meanwhile.
    SELECT array_agg(o ORDER BY o.number), array_agg(ration.override_json_v1(o) ORDER BY o.number) INTO v_overrides, v_shown
    FROM ration.override AS o
    WHERE o.number IN (SELECT due.number FROM ration.override AS due WHERE due.expires_at <= v_now
                       ORDER BY due.expires_at, due.number LIMIT c_overrides_max);
    WITH over AS (DELETE FROM ration.kill_switch AS k WHERE k.expires_at <= v_now RETURNING k.prefix)
    SELECT array_agg(o.prefix) INTO v_prefixes FROM over AS o;
    IF v_overrides IS NULL AND v_prefixes IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM ration.end_overrides_v1(v_overrides, true, v_generation, v_now);
    UPDATE ration.policy AS p SET generation = v_generation WHERE p.number IN (SELECT o.policy FROM unnest(v_overrides) AS o);
    PERFORM ration.apply_kill_switch_v1(k.prefix, v_generation) FROM unnest(v_prefixes) AS k (prefix);
    UPDATE ration.policy_set SET generation = v_generation;
    INSERT INTO ration.audit (at, actor, action, policy, before, reason, request_id)
    SELECT v_now, 'ration', 'override.expired', p.id, v_shown[o.place], '', ''
    FROM unnest(v_overrides) WITH ORDINALITY
             AS o (number, policy, key, attributes, action, limited, expires_at, actor, reason, created_at, generation, place)
    JOIN ration.policy AS p ON p.number = o.policy
    ORDER BY o.place;
    INSERT INTO ration.audit (at, actor, action, before, reason, request_id)
    SELECT v_now, 'ration', 'kill-switch.expired', json_build_object('prefix', k.prefix), '', ''
    FROM unnest(v_prefixes) AS k (prefix) ORDER BY k.prefix;
    PERFORM pg_notify('ration_policy', v_generation::text);
    RETURN coalesce(cardinality(v_overrides), 0) + coalesce(cardinality(v_prefixes), 0);
END $$;
