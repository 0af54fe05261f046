-- put_kill_switch_v1: makes the enforced policies whose ids begin with a prefix shadows for a while, in one transaction with its
-- audit row and the bump of the generation. Thrown again it lasts anew from now on.
--
-- Arguments: the prefix, '' for all; for how long; who asks, why, and the id of his request.
-- Answers: until when; how many policies it lies over that would be enforced; the generation.
-- Units: microseconds. Clock: clock_timestamp(), read under the lock.
-- Locks: the row of ration.policy_set, first.
-- SQLSTATE: RN003 from clock_v1; 23514 no prefix of an id.
CREATE OR REPLACE FUNCTION ration.put_kill_switch_v1(
    p_prefix text, p_lasts bigint, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL,
    OUT o_expires_at bigint, OUT o_policies int, OUT o_generation bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_now bigint;
BEGIN
    SELECT s.generation + 1 INTO o_generation FROM ration.policy_set AS s FOR UPDATE;
    v_now := ration.clock_v1(p_now);
    o_expires_at := v_now + p_lasts;
    INSERT INTO ration.kill_switch (prefix, expires_at, actor, reason, created_at)
    VALUES (p_prefix, o_expires_at, p_actor, p_reason, v_now)
    ON CONFLICT (prefix) DO UPDATE
    SET expires_at = excluded.expires_at, actor = excluded.actor, reason = excluded.reason, created_at = excluded.created_at;
    PERFORM ration.apply_kill_switch_v1(p_prefix, o_generation);
    SELECT count(*) INTO o_policies
    FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version)
    WHERE starts_with(p.id, p_prefix) AND p.parent IS NULL AND p.mode = 'shadow'
      AND coalesce(v.content ->> 'mode', 'enforce') = 'enforce';
    INSERT INTO ration.audit (at, actor, role, action, after, reason, request_id)
    VALUES (v_now, p_actor, p_role, 'kill-switch.thrown', json_build_object('prefix', p_prefix, 'forSeconds', p_lasts / 1000000),
            p_reason, p_request_id);
    UPDATE ration.policy_set SET generation = o_generation;
    PERFORM pg_notify('ration_policy', o_generation::text);
END $$;
