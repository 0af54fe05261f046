-- clean_slots_v1: deletes slots that have expired: those of holders that never came back. They counted no more.
--
-- Arguments: as clean_v1, but by the slots' ids. Answers: as clean_v1.
-- Units: rows. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the slots it deletes, by SKIP LOCKED. SQLSTATE: RN003 from clock_v1; RN001 RN004 from stretch_v1.
CREATE OR REPLACE FUNCTION ration.clean_slots_v1(
    p_shard int, p_after uuid, p_rows int, p_now bigint DEFAULT NULL, OUT o_deleted int, OUT o_last uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_now constant bigint := ration.clock_v1(p_now);
    s              record := ration.stretch_v1('slot', 'id', p_shard, p_after, p_rows);
BEGIN
    o_last := s.o_last;
    DELETE FROM ration.slot AS d
    USING (SELECT t.id FROM ration.slot AS t
           WHERE t.shard = p_shard AND t.id > s.o_after AND t.id <= s.o_until AND t.expires_at <= v_now
           ORDER BY t.id FOR UPDATE SKIP LOCKED) AS expired
    WHERE d.shard = p_shard AND d.id = expired.id;
    GET DIAGNOSTICS o_deleted = ROW_COUNT;
END $$;
