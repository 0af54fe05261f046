-- clamped_v1: a balance cut to what a bucket can hold and owe: minus to plus its capacity. The one home of that rule.
--
-- Units: balance and capacity in units of 1/d token. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.clamped_v1(p_balance numeric, p_capacity_units bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN least(p_capacity_units, greatest(-p_capacity_units, p_balance))::bigint;
