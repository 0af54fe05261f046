-- policy_keys_v1: the stored keys of a policy and of its overrides' limits, ascending, in bounded pieces: no index leads from a
-- policy to its keys, so that each call examines one stretch of the table and may find none of them there.
--
-- Arguments: the shard, a policy's id, the key to go on behind (NULL: from the first), how many keys at most.
-- Answers: the keys with the numbers of the policies that count them; o_last, where to go on behind, NULL when the end was
--        reached.
-- Units: keys. Clock: none. Locks: none.
-- SQLSTATE: RN001 from stretch_v1; RN004 p_limit outside 1 to 10,000.
CREATE OR REPLACE FUNCTION ration.policy_keys_v1(
    p_shard int, p_policy text, p_after uuid, p_limit int, OUT o_policies int[], OUT o_keys uuid[], OUT o_last uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_rows constant int := 10000;  -- examined: a few ten milliseconds' worth
    v_number int;
    v_table  text;
    s        record;
BEGIN
    IF (p_limit BETWEEN 1 AND 10000) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a call answers 1 to 10000 keys';
    END IF;
    o_policies := '{}';
    o_keys := '{}';
    SELECT p.number, ration.state_table_v1(ration.state_place_v1(p.algorithm, p.strict, p.durability)) INTO v_number, v_table
    FROM ration.policy AS p WHERE p.id = p_policy AND p.mode <> 'deleted';
    IF NOT FOUND THEN
        RETURN;
    END IF;
    s := ration.stretch_v1(v_table, 'key', p_shard, p_after, v_rows);
    EXECUTE format('SELECT coalesce(array_agg(k.policy ORDER BY k.key), ''{}''), coalesce(array_agg(k.key ORDER BY k.key), ''{}'')
                    FROM (SELECT t.policy, t.key FROM ration.%I AS t
                          WHERE t.shard = $1 AND t.key > $2 AND t.key <= $3
                            AND t.policy IN (SELECT p.number FROM ration.policy AS p WHERE $4 IN (p.number, p.parent))
                          ORDER BY t.key LIMIT $5) AS k', v_table)
        INTO o_policies, o_keys USING p_shard, s.o_after, s.o_until, v_number, p_limit;
    o_last := CASE WHEN cardinality(o_keys) = p_limit THEN o_keys[p_limit] ELSE s.o_last END;
END $$;
