-- delete_policy_v1: ends a policy with a tombstone, its next version, in one transaction with its audit row and the bump of the
-- generation. Its versions stay; what its keys have used counts no more; slots live until they are released or expire.
--
-- Arguments: p_expected is the version in force; who asks, why, and the id of his request.
-- Answers: o_outcome deleted | conflict (o_version is the one in force, 0 when there is none; nothing was changed); the
--        tombstone's version, and the generation.
-- Units: instants in microseconds.
-- Clock: clock_timestamp(), read under the lock; the tombstone is never installed before the version that it ends.
-- Locks: the row of ration.policy_set, first: policy changes are one after the other. Decisions wait for none of this.
-- SQLSTATE: RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.delete_policy_v1(
    p_id text, p_expected int, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL,
    OUT o_outcome text, OUT o_version int, OUT o_generation bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_before ration.policy_version;
    v_at     bigint;
BEGIN
    SELECT s.generation INTO o_generation FROM ration.policy_set AS s FOR UPDATE;
    SELECT v.* INTO v_before FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version)
    WHERE p.id = p_id AND NOT v.deleted;
    o_version := coalesce(v_before.version, 0);
    IF o_version = 0 OR o_version IS DISTINCT FROM p_expected THEN
        o_outcome := 'conflict';
        RETURN;
    END IF;
    o_outcome := 'deleted';
    o_generation := o_generation + 1;
    SELECT i.o_version, i.o_installed_at INTO o_version, v_at
    FROM ration.install_version_v1(p_id, v_before.content, v_before.n, v_before.d, v_before.capacity, 'keep', NULL, true, NULL,
                                   o_generation, ration.clock_v1(p_now)) AS i;
    PERFORM ration.follow_overrides_v1(v_before.number, p_actor, p_role, p_reason, p_request_id, o_generation, v_at);
    UPDATE ration.policy_set SET generation = o_generation;
    INSERT INTO ration.audit (at, actor, role, action, policy, version_before, version_after, before, reason, request_id)
    VALUES (v_at, p_actor, p_role, 'policy.deleted', p_id, v_before.version, o_version, v_before.content, p_reason, p_request_id);
    PERFORM pg_notify('ration_policy', o_generation::text);
END $$;
