-- settled_v1: what a bucket holds at an instant, under one policy version. The one home of the refill rule.
--
-- Units: balance and capacity in units of 1/d token, rate (n) in units per microsecond, instants in microseconds.
-- Clock: none; both instants are given. A clock behind p_at earns nothing.
-- Locks: none. SQLSTATE: none: no operand can overflow, since capacity and rate are below 2^62 and balance >= -capacity.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.settled_v1(p_balance bigint, p_at bigint, p_now bigint, p_rate bigint, p_capacity bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_now <= p_at THEN p_balance
            WHEN p_now - p_at > (p_capacity - p_balance) / p_rate THEN p_capacity
            ELSE p_balance + (p_now - p_at) * p_rate END;
