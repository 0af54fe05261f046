-- append_carried_v1: tells the sweeps that are open what a call has settled of their balances. Appended, a row a call and sweep:
-- decisions do not wait for each other here.
--
-- Arguments: rows of older versions that the call writes, in arrays or in none: policy, the version before, the version now,
--        whether a change cut the balance on the way.
-- Units: none. Clock: none. Locks: none; the caller has locked the rows, so that a sweep of them cannot end before it does.
-- SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.append_carried_v1(p_policies int[], p_from int[], p_to int[], p_clamped boolean[])
RETURNS void LANGUAGE plpgsql VOLATILE  -- which keeps the plan, as LANGUAGE sql does not
AS $$
BEGIN
    INSERT INTO ration.carried (policy, version, settled, clamped)
    SELECT s.policy, s.version, count(*), count(*) FILTER (WHERE c.clamped)
    FROM unnest(p_policies, p_from, p_to, p_clamped) AS c (policy, before, now, clamped)
    JOIN ration.sweep AS s ON s.policy = c.policy AND c.before < s.version AND s.version <= c.now
    GROUP BY s.policy, s.version;
END $$;
