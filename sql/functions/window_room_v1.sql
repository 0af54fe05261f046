-- window_room_v1: what may still be charged in a window at an instant. The one home of the window rules, with
-- window_wait_v1: a fixed window counts what was charged in it; a sliding one adds what was charged in the window before,
-- by the share of it that a window ending now would still reach.
--
-- Arguments: what was charged in this window and in the one before, the microseconds elapsed in it, window, limit.
-- Answers: tokens; below zero when the limit was lowered or a settlement charged more.
-- Units: tokens, microseconds. Clock: none.
-- Locks: none. SQLSTATE: none: counts are at most twice the limit, and a sliding window's limit times its length is below 2^61.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.window_room_v1(
    p_sliding boolean, p_current bigint, p_previous bigint, p_elapsed bigint, p_span bigint, p_limit bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN p_limit - p_current
       - CASE WHEN p_sliding THEN (p_previous * (p_span - p_elapsed) + p_span - 1) / p_span ELSE 0 END;
