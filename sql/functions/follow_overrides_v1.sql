-- follow_overrides_v1: the overrides of a policy after a change of it: each that has another limit has the policy's new content,
-- with that limit, in a version of the same number. What they keep is kept; a reset of the policy is one of them too. With a
-- deleted policy they end.
--
-- Arguments: the policy, whose new version is in force in this transaction; who asks, why, and the id of his request; the
--        generation and the instant of the change.
-- Units: microseconds. Clock: none, the instant is given.
-- Locks: the caller holds the row of ration.policy_set, and bumps its generation. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.follow_overrides_v1(
    p_policy int, p_actor text, p_role text, p_reason text, p_request_id text, p_generation bigint, p_at bigint)
RETURNS void LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_version   ration.policy_version;
    v_overrides ration.override[];
    v_shown     json[];  -- these, for the audit
BEGIN
    SELECT v.* INTO v_version FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version) WHERE p.number = p_policy;
    IF v_version.deleted THEN
        SELECT array_agg(o ORDER BY o.number), array_agg(ration.override_json_v1(o) ORDER BY o.number) INTO v_overrides, v_shown
        FROM ration.override AS o WHERE o.policy = p_policy;
        PERFORM ration.end_overrides_v1(v_overrides, false, p_generation, p_at);
        INSERT INTO ration.audit (at, actor, role, action, policy, before, reason, request_id)
        SELECT p_at, p_actor, p_role, 'override.removed', p.id, s.shown, p_reason, p_request_id
        FROM unnest(v_shown) AS s (shown) JOIN ration.policy AS p ON p.number = p_policy;
        RETURN;
    END IF;
    PERFORM ration.install_version_v1(p.id, ration.override_content_v1(v_version.content, v.content -> 'limit'), v.n, v.d, v.capacity,
                                      CASE v_version.balances WHEN 'reset' THEN 'reset' ELSE 'keep' END, NULL, false, p_policy,
                                      p_generation, p_at)
    FROM ration.override AS o
    JOIN ration.policy AS p ON p.number = o.limited
    JOIN ration.policy_version AS v ON v.number = p.number AND v.version = p.version
    WHERE o.policy = p_policy;
END $$;
