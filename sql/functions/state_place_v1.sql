-- state_place_v1: which table keeps a policy's state, by its place in the lock order: 1 bucket_fast, 2 bucket_durable,
-- 3 window_fast, 4 window_durable, 5 log_fast, 6 log_durable, 7 slot_parent with slot, which are logged always.
--
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.state_place_v1(p_algorithm text, p_strict boolean, p_durability text)
RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_algorithm = 'concurrency' THEN 7
            ELSE CASE WHEN p_algorithm = 'token_bucket' THEN 1
                      WHEN p_algorithm = 'sliding_window_log' OR p_strict THEN 5
                      ELSE 3 END
                 + CASE WHEN p_durability = 'durable' THEN 1 ELSE 0 END END;
