-- balance_at_v1: what a stored balance is at an instant under the version in force now: carried over every change since
-- its own version, then settled. For looks at the state; decisions do the same under their locks.
--
-- Units: the answer in units of 1/d token of the version in force, instants in microseconds.
-- Clock: none, the instant is given. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.balance_at_v1(p_policy int, p_version int, p_balance bigint, p_at bigint, p_now bigint)
RETURNS bigint LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT ration.settled_v1(c.o_balance, c.o_at, p_now, p.n, p.capacity_units)
    FROM ration.policy AS p
    CROSS JOIN LATERAL ration.carry_v1(p.number, p_version, p.version, p_balance, p_at) AS c
    WHERE p.number = p_policy;
END;
