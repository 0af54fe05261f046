-- log_mark_v1: the instant at which an entry of a log stands: its own, or the end of its segment in a log that counts in
-- segments, so that the oldest segment counts whole.
--
-- Arguments: p_segment is the length of a segment, NULL where there are none.
-- Units: microseconds. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.log_mark_v1(p_at bigint, p_segment bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_segment IS NULL THEN p_at ELSE p_at - p_at % p_segment + p_segment END;
