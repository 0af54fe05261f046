-- open_sweep_v1: begins the sweep of a change: from here on sweep_v1 settles what the policy has kept under older versions.
-- What was being swept for an earlier change of the policy goes on as this sweep; the audit says how far the earlier one came.
--
-- Arguments: the policy and its version that makes the change, both of which are in force in this transaction; the instant of
--        the change.
-- Answers: nothing. Windows and logs that are kept are counted on as they stand: there is nothing to sweep.
-- Units: microseconds. Clock: none, the instant is given.
-- Locks: the policy's sweep. The caller holds the row of ration.policy_set.
-- SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.open_sweep_v1(p_policy int, p_version int, p_at bigint)
RETURNS void LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF EXISTS (SELECT FROM ration.policy AS p JOIN ration.policy_version AS v USING (number)
               WHERE p.number = p_policy AND v.version = p_version
                 AND (p.algorithm = 'token_bucket' OR v.balances IN ('reset', 'restart'))) THEN
        PERFORM ration.close_sweep_v1(p_policy, p_at, format('overtaken by version %s', p_version));
        INSERT INTO ration.sweep (policy, version, began_at) VALUES (p_policy, p_version, p_at);
    END IF;
END $$;
