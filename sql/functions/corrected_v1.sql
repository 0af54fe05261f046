-- corrected_v1: by how much a settlement changes what a window or a log counts. The one home of that rule: the difference
-- of the two costs, but an extra charge never raises a count above twice the limit, so that no arithmetic overflows.
--
-- Arguments: the cost charged and the actual one, what is counted together now, the limit.
-- Answers: less than the difference of the costs when the extra charge was cut.
-- Units: tokens. Clock: none. Locks: none. SQLSTATE: none: limits are below 2^62.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.corrected_v1(p_charged bigint, p_actual bigint, p_counted bigint, p_limit bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN least(p_actual - p_charged, greatest(0, 2 * p_limit - p_counted));
