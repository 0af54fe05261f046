-- put_override_v1: sets the override of one key of a policy, in the place of the one that it has, in one transaction with its
-- audit row and the bump of the generation.
--
-- Another limit is kept by a policy of its own: the policy with that limit, its id the policy's, '!' and the override's number,
-- its version the policy's. Its bucket begins with what the key's bucket holds, by keep: nothing is gained that was not
-- earned. Windows, logs and slots begin with nothing used.
--
-- Arguments: the policy's id; the values of its `per` by name; limit, exempt or blocked. p_limit is a whole limit as in policies,
--        with n, d and capacity as in put_policy_v1, NULL for the other actions. It ends at p_expires_at, or p_lasts after
--        now, or with both NULL not by itself. Who asks, why, and the id of his request.
-- Answers: o_outcome set | replaced | absent (there is no such policy) | key (the attributes are not those of `per`, which are
--        o_members) | limit (it is of another kind than the policy's, by o_members) | expired (p_expires_at has passed) | full
--        (1,000 overrides of the policy, or 100,000 in all, are there); nothing was changed by the last five. Number of the
--        override, generation.
-- Units: n in units per microsecond, d in units per token, capacity in tokens, instants and p_lasts in microseconds.
-- Clock: clock_timestamp(), read under the lock.
-- Locks: the row of ration.policy_set, first; then the bucket of the key.
-- SQLSTATE: RN003 from clock_v1; RN005 from install_version_v1; 23502 23514 what is missing or no action; 57014 statement_timeout.
CREATE OR REPLACE FUNCTION ration.put_override_v1(
    p_id text, p_attributes jsonb, p_action text, p_limit json, p_n bigint, p_d bigint, p_capacity bigint, p_expires_at bigint,
    p_lasts bigint, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL,
    OUT o_outcome text, OUT o_number bigint, OUT o_generation bigint, OUT o_members text[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_policy  ration.policy;
    v_content json;
    v_key     uuid;
    v_now     bigint;
    v_before  ration.override;
    v_shown   json;             -- v_before, for the audit
    v_from    ration.policy;    -- whose bucket the key has used so far
    v_balance bigint;           -- what that held, under the other limit
    v_limited int;
    v_after   ration.override;
    b         record;           -- what v_from's bucket held
BEGIN
    SELECT s.generation + 1 INTO o_generation FROM ration.policy_set AS s FOR UPDATE;
    v_now := ration.clock_v1(p_now);
    SELECT p.* INTO v_policy FROM ration.policy AS p WHERE p.id = p_id AND p.parent IS NULL AND p.mode <> 'deleted';
    SELECT v.content INTO v_content FROM ration.policy_version AS v WHERE v.number = v_policy.number AND v.version = v_policy.version;
    SELECT o.o_members, o.o_key INTO o_members, v_key FROM ration.override_key_v1(v_content, p_id, p_attributes) AS o;
    SELECT o.* INTO v_before FROM ration.override AS o WHERE o.policy = v_policy.number AND o.key = v_key;
    IF v_policy.number IS NULL THEN
        o_outcome := 'absent';
    ELSIF v_key IS NULL THEN
        o_outcome := 'key';
    ELSIF p_expires_at <= v_now THEN
        o_outcome := 'expired';
    ELSIF v_before.number IS NULL AND ((SELECT count(*) FROM ration.override) >= 100000
          OR (SELECT count(*) FROM ration.override AS o WHERE o.policy = v_policy.number) >= 1000) THEN
        o_outcome := 'full';
    ELSIF p_action = 'limit' THEN
        SELECT array_agg(m.name) INTO o_members
        FROM unnest(ARRAY['algorithm', 'windowSeconds', 'ttlSeconds', 'strict']) AS m (name)
        -- As jsonb, in which 60 and 60.0 are one number.
        WHERE (v_content -> 'limit' -> m.name)::jsonb IS DISTINCT FROM (p_limit -> m.name)::jsonb;
        IF o_members IS NOT NULL THEN
            o_outcome := 'limit';
        END IF;
    END IF;
    IF o_outcome IS NOT NULL THEN
        RETURN;
    END IF;

    o_outcome := CASE WHEN v_before.number IS NULL THEN 'set' ELSE 'replaced' END;
    o_number := nextval(pg_get_serial_sequence('ration.override', 'number'));
    v_shown := ration.override_json_v1(v_before);
    IF p_action = 'limit' THEN
        SELECT p.* INTO v_from FROM ration.policy AS p WHERE p.number = coalesce(v_before.limited, v_policy.number);
        IF v_policy.algorithm = 'token_bucket' THEN
            b := ration.drain_v1(v_from.number, ration.bucket_key(v_from.id, p_attributes), v_now);
        END IF;
        SELECT i.o_number INTO v_limited
        FROM ration.install_version_v1(p_id || '!' || o_number, ration.override_content_v1(v_content, p_limit), p_n, p_d, p_capacity,
                                       'keep', NULL, false, v_policy.number, o_generation, v_now) AS i;
        -- It has one key: what an absent row of it stands for is what that one holds.
        IF v_policy.algorithm = 'token_bucket' THEN
            v_balance := ration.clamped_v1(ration.converted_v1('keep', b.o_balance, v_from.d, v_from.capacity_units, p_d, p_capacity * p_d),
                                           p_capacity * p_d);
            UPDATE ration.policy SET idle_balance = v_balance, idle_at = b.o_at WHERE number = v_limited;
            UPDATE ration.policy_version SET idle_balance = v_balance, idle_at = b.o_at WHERE number = v_limited;
        END IF;
    END IF;
    IF v_before.number IS NOT NULL THEN
        PERFORM ration.end_overrides_v1(ARRAY[v_before], v_limited IS NULL, o_generation, v_now);
    END IF;
    INSERT INTO ration.override AS o (number, policy, key, attributes, action, limited, expires_at, actor, reason, created_at, generation)
    OVERRIDING SYSTEM VALUE
    VALUES (o_number, v_policy.number, v_key, p_attributes, p_action, v_limited, coalesce(p_expires_at, v_now + p_lasts), p_actor,
            p_reason, v_now, o_generation)
    RETURNING o.* INTO v_after;
    -- Instances load a policy with its overrides.
    UPDATE ration.policy SET generation = o_generation WHERE number = v_policy.number;
    UPDATE ration.policy_set SET generation = o_generation;
    INSERT INTO ration.audit (at, actor, role, action, policy, before, after, reason, request_id)
    VALUES (v_now, p_actor, p_role, 'override.set', p_id, v_shown, ration.override_json_v1(v_after), p_reason, p_request_id);
    PERFORM pg_notify('ration_policy', o_generation::text);
END $$;
