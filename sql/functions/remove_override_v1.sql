-- remove_override_v1: takes the override of one key of a policy away, in one transaction with its audit row and the bump of the
-- generation.
--
-- Arguments: the policy's id; the values of its `per` by name; who asks, why, and the id of his request.
-- Answers: o_outcome removed | absent (there is no such policy, or no override for the key) | key (the attributes are not those of
--        `per`, which are o_members); the generation.
-- Units: instants in microseconds. Clock: clock_timestamp(), read under the lock.
-- Locks: the row of ration.policy_set, first; then the buckets of the key.
-- SQLSTATE: RN003 from clock_v1; 57014 statement_timeout.
CREATE OR REPLACE FUNCTION ration.remove_override_v1(
    p_id text, p_attributes jsonb, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL,
    OUT o_outcome text, OUT o_generation bigint, OUT o_members text[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_content  json;
    v_key      uuid;
    v_override ration.override;
    v_shown    json;
    v_now      bigint;
BEGIN
    SELECT s.generation INTO o_generation FROM ration.policy_set AS s FOR UPDATE;
    SELECT v.content INTO v_content
    FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version)
    WHERE p.id = p_id AND p.parent IS NULL AND p.mode <> 'deleted';
    SELECT o.o_members, o.o_key INTO o_members, v_key FROM ration.override_key_v1(v_content, p_id, p_attributes) AS o;
    SELECT o.* INTO v_override FROM ration.override AS o JOIN ration.policy AS p ON p.number = o.policy
    WHERE p.id = p_id AND o.key = v_key;
    IF v_content IS NOT NULL AND v_key IS NULL THEN
        o_outcome := 'key';
        RETURN;
    ELSIF v_override.number IS NULL THEN
        o_outcome := 'absent';
        RETURN;
    END IF;
    o_outcome := 'removed';
    o_generation := o_generation + 1;
    v_now := ration.clock_v1(p_now);
    v_shown := ration.override_json_v1(v_override);
    PERFORM ration.end_overrides_v1(ARRAY[v_override], true, o_generation, v_now);
    UPDATE ration.policy SET generation = o_generation WHERE number = v_override.policy;
    UPDATE ration.policy_set SET generation = o_generation;
    INSERT INTO ration.audit (at, actor, role, action, policy, before, reason, request_id)
    VALUES (v_now, p_actor, p_role, 'override.removed', p_id, v_shown, p_reason, p_request_id);
    PERFORM pg_notify('ration_policy', o_generation::text);
END $$;
