-- floor_div_v1: an exact quotient, rounded toward minus infinity. Numeric's own division rounds, and div cuts toward zero.
--
-- Arguments: whole numbers, the divisor above 0.
-- Units: none. Clock: none. Locks: none. SQLSTATE: 22012 from a divisor of 0.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.floor_div_v1(p_dividend numeric, p_divisor numeric)
RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN div(p_dividend, p_divisor) - CASE WHEN mod(p_dividend, p_divisor) < 0 THEN 1 ELSE 0 END;
