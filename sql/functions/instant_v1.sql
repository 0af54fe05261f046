-- instant_v1: the instant after a wait, for people: infinity, where that is beyond what microseconds can say.
--
-- Units: microseconds since 1970 (UTC), microseconds.
-- Clock: none, the instant is given. Locks: none. SQLSTATE: none: a deep debt takes longer than there is time.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.instant_v1(p_from bigint, p_wait bigint)
RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_wait > 9223372036854775807 - p_from THEN 'infinity'::timestamptz
            ELSE to_timestamp((p_from + p_wait) / 1000000.0) END;
