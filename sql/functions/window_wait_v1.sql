-- window_wait_v1: how long after its start a window first has room for a cost that it has none for now, if nothing else is
-- charged: later in this window, in the next, where what is charged now weighs as what was charged before, or at the start
-- of the one after.
--
-- Arguments: as window_room_v1; p_cost at most the limit.
-- Units: tokens, microseconds from the window's start. Clock: none.
-- Locks: none. SQLSTATE: none, as window_room_v1.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.window_wait_v1(
    p_sliding boolean, p_current bigint, p_previous bigint, p_span bigint, p_limit bigint, p_cost bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN NOT p_sliding THEN p_span
            WHEN p_previous > 0 AND (p_limit - p_current - p_cost) * p_span >= p_previous
                THEN p_span - (p_limit - p_current - p_cost) * p_span / p_previous
            WHEN p_current > 0 THEN p_span + greatest(0, p_span - (p_limit - p_cost) * p_span / p_current)
            ELSE p_span END;
