-- idle_log_v1: the log of a key that spent nothing: empty, but where a loss of state left the policy's idle keys spent.
--
-- Units: microseconds, tokens. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.idle_log_v1(p_policy ration.policy)
RETURNS bigint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_policy.idle_balance < p_policy.capacity
            THEN ARRAY[ration.log_mark_v1(p_policy.idle_at, ration.segment_v1(p_policy)), p_policy.capacity - p_policy.idle_balance]
            ELSE '{}'::bigint[] END;
