-- state_table_v1: the table of a place in the lock order (state_place_v1), in which a key has one row.
--
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.state_table_v1(p_place int)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (ARRAY['bucket_fast', 'bucket_durable', 'window_fast', 'window_durable', 'log_fast', 'log_durable', 'slot_parent'])[p_place];
