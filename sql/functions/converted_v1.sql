-- converted_v1: what a balance is under the figures of the next version: as many tokens (keep), or the same fraction of the
-- capacity (scale); rounded toward minus infinity. The one home of that rule. The caller clamps it to the new capacity (clamped_v1).
--
-- Arguments: the rule, the balance and the figures under which it counts, the figures of the next version.
-- Units: balances and capacities in units of 1/d token of their version. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.converted_v1(
    p_balances text, p_balance bigint, p_d bigint, p_capacity_units bigint, p_new_d bigint, p_new_capacity_units bigint)
RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE p_balances WHEN 'scale' THEN ration.floor_div_v1(p_balance::numeric * p_new_capacity_units, p_capacity_units)
                       ELSE ration.floor_div_v1(p_balance::numeric * p_new_d, p_d) END;
