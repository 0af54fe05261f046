-- clean_slot_parents_v1: deletes the parents that have no slots: a key without one holds nothing.
--
-- Arguments: as clean_v1. Answers: as clean_v1.
-- Units: rows. Clock: none; p_now is not looked at: it is there so that all cleaners are called alike.
-- Locks: parents without slots, ascending by key, by SKIP LOCKED. SQLSTATE: RN001 RN004 from stretch_v1.
CREATE OR REPLACE FUNCTION ration.clean_slot_parents_v1(
    p_shard int, p_after uuid, p_rows int, p_now bigint DEFAULT NULL, OUT o_deleted int, OUT o_last uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    s      record := ration.stretch_v1('slot_parent', 'key', p_shard, p_after, p_rows);
    v_held uuid[];
BEGIN
    o_last := s.o_last;
    SELECT array_agg(f.key) INTO v_held
    FROM (SELECT o.key FROM ration.slot_parent AS o
          WHERE o.shard = p_shard AND o.key > s.o_after AND o.key <= s.o_until
            AND NOT EXISTS (SELECT FROM ration.slot AS t WHERE t.shard = p_shard AND t.key = o.key)
          ORDER BY o.key FOR UPDATE SKIP LOCKED) AS f;
    -- A new statement: it sees the slots that were acquired before the locks were ours. Nobody acquires one without them.
    DELETE FROM ration.slot_parent AS d
    WHERE d.shard = p_shard AND d.key = ANY (v_held)
      AND NOT EXISTS (SELECT FROM ration.slot AS t WHERE t.shard = p_shard AND t.key = d.key);
    GET DIAGNOSTICS o_deleted = ROW_COUNT;
END $$;
