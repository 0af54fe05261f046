-- window_start_v1: the start of the window of an instant. Windows are aligned to the epoch, in UTC.
--
-- Units: microseconds. Clock: none, the instant is given. Locks: none. SQLSTATE: 22012 a window of no length.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.window_start_v1(p_at bigint, p_span bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN p_at - p_at % p_span;
