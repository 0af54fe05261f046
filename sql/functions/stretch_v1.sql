-- stretch_v1: the next stretch of a table that a cleaner examines, so that a call is bounded whatever it finds.
--
-- Arguments: the table, NULL where the durability is, and its column behind the shard in its primary key; the shard, the key
--        to go on behind (NULL: from the first), rows to examine.
-- Answers: o_after and o_until, between which the stretch lies: behind the one, up to the other, which is NULL when nothing is
--        there; o_last, where to go on behind, NULL when the end was reached.
-- Units: rows. Clock: none. Locks: none.
-- SQLSTATE: RN001 from ready_v1; RN004 no durability, p_rows outside 1 to 10,000.
CREATE OR REPLACE FUNCTION ration.stretch_v1(
    p_table text, p_column text, p_shard int, p_after uuid, p_rows int, OUT o_after uuid, OUT o_until uuid, OUT o_last uuid)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_examined int;
BEGIN
    PERFORM ration.ready_v1(false, NULL);
    IF (p_table IS NOT NULL AND p_rows BETWEEN 1 AND 10000) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a call examines 1 to 10000 rows, durable ones or not';
    END IF;
    o_after := coalesce(p_after, '00000000-0000-0000-0000-000000000000');
    -- Planned anew each time: once in a while, and over any table.
    EXECUTE format('SELECT count(*), (array_agg(s.key ORDER BY s.key DESC))[1]
                    FROM (SELECT t.%2$I AS key FROM ration.%1$I AS t WHERE t.shard = $1 AND t.%2$I > $2 ORDER BY 1 LIMIT $3) AS s',
                   p_table, p_column)
        INTO v_examined, o_until USING p_shard, o_after, p_rows;
    IF v_examined = p_rows THEN
        o_last := o_until;
    END IF;
END $$;
