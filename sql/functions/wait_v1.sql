-- wait_v1: how long it takes to earn some units, rounded up to the microsecond; 0 when there is nothing to earn.
--
-- Units: p_units in units of 1/d token, p_rate (n) in units per microsecond, p_ahead and the answer in microseconds:
--        p_ahead is how far the bucket's instant is ahead of the clock; nothing is earned before it is reached.
-- Clock: none. Locks: none. SQLSTATE: none: the longest debt at the slowest rate, and a clock far behind, wait 2^63 - 1.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.wait_v1(p_units bigint, p_rate bigint, p_ahead bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_units > 0 THEN least(greatest(0, p_ahead), 9223372036854775806 - (p_units - 1) / p_rate) + (p_units - 1) / p_rate + 1
            ELSE 0 END;
