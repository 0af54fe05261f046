-- confirm_v1: an instance of the service says that it lives, and which generation of the policy set is in force in it:
-- nothing that it answers any more is of an older one. Called once a second, and at once when that changes.
--
-- Arguments: p_id is the instance's own for as long as it runs; name and version of the program are for people. p_started_at
--        NULL: it starts now.
-- Answers: the instant, and when it started.
-- Units: microseconds. Clock: clock_timestamp(), or p_now on a test clock.
-- Locks: the instance's row.
-- SQLSTATE: RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.confirm_v1(
    p_id uuid, p_name text, p_version text, p_started_at bigint, p_generation bigint, p_now bigint DEFAULT NULL,
    OUT o_at bigint, OUT o_started_at bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    o_at := ration.clock_v1(p_now);
    o_started_at := coalesce(p_started_at, o_at);
    -- The instant may go back, as the clock may: an instance that was seen in the future would never be lost.
    INSERT INTO ration.instance AS i (id, name, version, started_at, seen_at, generation)
    VALUES (p_id, p_name, p_version, o_started_at, o_at, p_generation)
    ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, generation = excluded.generation;
END $$;
