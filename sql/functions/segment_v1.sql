-- segment_v1: how long a segment of a strict sliding window counter is: a sixtieth of its window, rounded up, so that sixty
-- of them are never less than the window (policy.SegmentsPerWindow). NULL for every other limit.
--
-- Units: microseconds. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.segment_v1(p_policy ration.policy)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_policy.strict THEN (p_policy.span + 59) / 60 END;
