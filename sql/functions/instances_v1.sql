-- instances_v1: the instances of the service, as each has told by confirm_v1.
--
-- Answers: one row for each, by name and start: o_alive, it was seen within 5 s; o_awaited, within 15 s: a change that is to
--        be confirmed waits for it. What is lost for longer is only listed, until clean_instances_v1 takes it.
-- Units: microseconds. Clock: clock_timestamp(), or p_now on a test clock. Locks: none.
-- SQLSTATE: RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.instances_v1(
    p_now bigint DEFAULT NULL,
    OUT o_id uuid, OUT o_name text, OUT o_version text, OUT o_started_at bigint, OUT o_seen_at bigint, OUT o_generation bigint,
    OUT o_alive boolean, OUT o_awaited boolean)
RETURNS SETOF record LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_now constant bigint := ration.clock_v1(p_now);
BEGIN
    -- Behind the clock or ahead of it: one that was seen before the clock went back is as old as that.
    RETURN QUERY
    SELECT i.id, i.name, i.version, i.started_at, i.seen_at, i.generation,
           abs(v_now - i.seen_at) <= 5000000, abs(v_now - i.seen_at) <= 15000000
    FROM ration.instance AS i ORDER BY i.name, i.started_at, i.id;
END $$;
