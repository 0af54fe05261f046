-- remove_kill_switch_v1: takes a kill switch back: its policies are enforced again, unless another switch lies over them.
--
-- Arguments: the prefix that it was thrown for; who asks, why, and the id of his request.
-- Answers: whether there was one; the generation.
-- Units: instants in microseconds. Clock: clock_timestamp(), read under the lock.
-- Locks: the row of ration.policy_set, first.
-- SQLSTATE: RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.remove_kill_switch_v1(
    p_prefix text, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL,
    OUT o_removed boolean, OUT o_generation bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    SELECT s.generation INTO o_generation FROM ration.policy_set AS s FOR UPDATE;
    DELETE FROM ration.kill_switch AS k WHERE k.prefix = p_prefix;
    o_removed := FOUND;
    IF o_removed THEN
        o_generation := o_generation + 1;
        PERFORM ration.apply_kill_switch_v1(p_prefix, o_generation);
        INSERT INTO ration.audit (at, actor, role, action, before, reason, request_id)
        VALUES (ration.clock_v1(p_now), p_actor, p_role, 'kill-switch.taken-back', json_build_object('prefix', p_prefix), p_reason,
                p_request_id);
        UPDATE ration.policy_set SET generation = o_generation;
        PERFORM pg_notify('ration_policy', o_generation::text);
    END IF;
END $$;
