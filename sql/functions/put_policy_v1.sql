-- put_policy_v1: installs a version of a policy, in one transaction with its audit row and the bump of the generation.
--
-- Arguments: p_expected is the version in force, 0 when the policy must not exist yet, or no more. p_content, n, d, capacity,
--        p_balances (NULL: keep) and p_start are those of install_version_v1; who asks, why, and the id of his request.
-- Answers: o_outcome created | changed | unchanged (the same content, and nothing begins anew: no new version) | conflict
--        (o_version is the one in force, 0 when there is none; nothing was changed) | restart (the members o_restarts say which
--        state the policy keeps, so that its balances could not be carried over: only p_balances restart does that; nothing
--        was changed) | needs-reset (the policy was deleted, and what it kept counts no more: only reset and restart say so;
--        nothing was changed) | overridden (a restart, and the overrides of the keys o_restarts are in its way; nothing was
--        changed); number, version, instant and generation of what is in force now.
-- Units: n in units per microsecond, d in units per token, capacity in tokens, instants in microseconds.
-- Clock: clock_timestamp(), read under the lock; the new version is never installed before the one it replaces.
-- Locks: the row of ration.policy_set, first: policy changes are one after the other. Decisions wait for none of this.
-- SQLSTATE: RN003 from clock_v1; RN005 and 23514 from install_version_v1.
CREATE OR REPLACE FUNCTION ration.put_policy_v1(
    p_id text, p_expected int, p_content json, p_n bigint, p_d bigint, p_capacity bigint, p_balances text, p_start text,
    p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL,
    OUT o_outcome text, OUT o_number int, OUT o_version int, OUT o_installed_at bigint, OUT o_generation bigint,
    OUT o_restarts text[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_before ration.policy_version;
    v_lives  boolean;  -- there is a version in force
BEGIN
    SELECT s.generation INTO o_generation FROM ration.policy_set AS s FOR UPDATE;
    SELECT v.* INTO v_before FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version) WHERE p.id = p_id;
    v_lives := FOUND AND NOT v_before.deleted;
    o_number := v_before.number;
    o_version := CASE WHEN v_lives THEN v_before.version ELSE 0 END;
    o_installed_at := v_before.installed_at;
    IF o_version IS DISTINCT FROM p_expected THEN
        o_outcome := 'conflict';
        RETURN;
    END IF;
    IF v_lives AND v_before.content::text = p_content::text AND (p_balances IN ('reset', 'restart')) IS NOT TRUE THEN
        o_outcome := 'unchanged';
        RETURN;
    END IF;
    IF v_before.version > 0 AND p_balances IS DISTINCT FROM 'restart' THEN
        SELECT array_agg(m.path) INTO o_restarts
        FROM unnest(ARRAY['per', 'ipPrefix', 'durability', 'scope', 'limit,algorithm', 'limit,windowSeconds', 'limit,strict']) AS m (path)
        -- As jsonb, in which 60 and 60.0 are one number.
        WHERE (v_before.content #> string_to_array(m.path, ','))::jsonb IS DISTINCT FROM (p_content #> string_to_array(m.path, ','))::jsonb;
        IF o_restarts IS NOT NULL THEN
            o_outcome := 'restart';
            RETURN;
        ELSIF NOT v_lives AND p_balances IS DISTINCT FROM 'reset' THEN
            o_outcome := 'needs-reset';
            RETURN;
        END IF;
    ELSIF v_lives AND p_balances = 'restart' THEN
        o_restarts := ration.hindering_overrides_v1(o_number, p_content);
        IF o_restarts IS NOT NULL THEN
            o_outcome := 'overridden';
            RETURN;
        END IF;
    END IF;

    o_outcome := CASE WHEN v_lives THEN 'changed' ELSE 'created' END;
    o_generation := o_generation + 1;
    SELECT i.o_number, i.o_version, i.o_installed_at INTO o_number, o_version, o_installed_at
    FROM ration.install_version_v1(p_id, p_content, p_n, p_d, p_capacity, coalesce(p_balances, 'keep'), p_start, false, NULL,
                                   o_generation, ration.clock_v1(p_now)) AS i;
    PERFORM ration.follow_overrides_v1(o_number, p_actor, p_role, p_reason, p_request_id, o_generation, o_installed_at);
    UPDATE ration.policy_set SET generation = o_generation;
    INSERT INTO ration.audit (at, actor, role, action, policy, version_before, version_after, before, after, reason, request_id)
    VALUES (o_installed_at, p_actor, p_role, 'policy.' || o_outcome, p_id, v_before.version, o_version, v_before.content, p_content,
            p_reason, p_request_id);
    PERFORM pg_notify('ration_policy', o_generation::text);
END $$;
