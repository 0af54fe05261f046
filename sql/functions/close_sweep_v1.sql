-- close_sweep_v1: ends the sweep of a policy, if one is open, and writes into the audit what came of it: how many balances were
-- settled and how many of these a change cut, by the sweep itself and by calls (append_carried_v1).
--
-- Arguments: the policy, the instant of the end, what ended it.
-- Units: microseconds. Clock: none, the instant is given.
-- Locks: the policy's sweep. The caller holds the row of ration.policy_set: policy changes write to the audit behind that too.
-- SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.close_sweep_v1(p_policy int, p_at bigint, p_reason text)
RETURNS void LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    WITH ended AS (
        DELETE FROM ration.sweep AS s WHERE s.policy = p_policy RETURNING s.version, s.settled, s.clamped
    ), carried AS (
        DELETE FROM ration.carried AS c WHERE c.policy = p_policy RETURNING c.version, c.settled, c.clamped
    )
    INSERT INTO ration.audit (at, actor, action, policy, version_after, reason, request_id, settled, clamped)
    SELECT p_at, 'ration', 'policy.swept', p.id, e.version, p_reason, '', e.settled + d.settled, e.clamped + d.clamped
    FROM ended AS e
    JOIN ration.policy AS p ON p.number = p_policy
    -- A decision under the version before may have been late: what it settled was another sweep's.
    CROSS JOIN (SELECT coalesce(sum(c.settled), 0) AS settled, coalesce(sum(c.clamped), 0) AS clamped
                FROM carried AS c JOIN ended USING (version)) AS d;
END $$;
