-- rebase_v1: sets to now what is ahead of the clock, as a clock that stepped forward and back leaves it: until then such a
-- bucket earns nothing and such a window does not end. One stretch of one table a call, with an audit row (bucket.rebased)
-- where it changed anything. Begin with place 0: the instants of the policies themselves, or keys that cross them get ahead
-- again.
--
-- Arguments: p_place is 0 for policies, else as of state_place_v1, 7 for slots; the shard, the key to go on behind (NULL: from
--        the first), rows to examine. actor, role, reason and request id are for the audit.
-- Answers: how many rows were set back, and the last key examined, NULL when the end of the place was reached.
-- Units: rows. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the row of ration.policy_set, which the other places share, so that the policies stay the same; then the rows it
--        changes, ascending by key.
-- SQLSTATE: RN003 from clock_v1; RN001 RN004 from stretch_v1.
CREATE OR REPLACE FUNCTION ration.rebase_v1(
    p_place int, p_shard int, p_after uuid, p_rows int,
    p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL, OUT o_rebased int, OUT o_last uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_table constant text := CASE p_place WHEN 0 THEN 'policy_version' WHEN 7 THEN 'slot' ELSE ration.state_table_v1(p_place) END;
    v_key   constant text := CASE p_place WHEN 7 THEN 'id' ELSE 'key' END;
    v_now bigint;
    s     record;
BEGIN
    IF p_place = 0 THEN
        PERFORM FROM ration.policy_set FOR UPDATE;
        v_now := ration.clock_v1(p_now);
        UPDATE ration.policy SET idle_at = v_now WHERE idle_at > v_now;
        UPDATE ration.policy_version SET installed_at = least(installed_at, v_now), idle_at = least(idle_at, v_now)
        WHERE greatest(installed_at, idle_at) > v_now;
    ELSE
        PERFORM FROM ration.policy_set FOR SHARE;
        s := ration.stretch_v1(v_table, v_key, p_shard, p_after, p_rows);
        v_now := ration.clock_v1(p_now);
        o_last := s.o_last;
        -- Planned anew each time: once in a while, and over any table.
        EXECUTE format(
            'WITH held AS (SELECT t.%2$I AS key, p AS policy
                           FROM ration.%1$I AS t JOIN ration.policy AS p ON p.number = t.policy
                           WHERE t.shard = $1 AND t.%2$I > $2 AND t.%2$I <= $3 AND %3$s
                           ORDER BY t.%2$I FOR NO KEY UPDATE OF t)
             UPDATE ration.%1$I AS t SET %4$s FROM held AS h WHERE t.shard = $1 AND t.%2$I = h.key',
            v_table, v_key,
            CASE WHEN p_place <= 2 THEN 't.at > $4'
                 WHEN p_place <= 4 THEN 't.start > $4'
                 WHEN p_place <= 6 THEN 't.entries[cardinality(t.entries) - 1] > ration.log_mark_v1($4, ration.segment_v1(p))'
                 ELSE 't.expires_at > $4 + t.ttl' END,
            CASE WHEN p_place <= 2 THEN 'at = $4'
                 WHEN p_place <= 4 THEN 'start = ration.window_start_v1($4, (h.policy).span)'
                 WHEN p_place <= 6 THEN 'entries = ration.log_rebased_v1(t.entries, ration.log_mark_v1($4, ration.segment_v1(h.policy)))'
                 ELSE 'expires_at = $4 + t.ttl' END)
            USING p_shard, s.o_after, s.o_until, v_now;
    END IF;
    GET DIAGNOSTICS o_rebased = ROW_COUNT;
    IF o_rebased > 0 THEN
        INSERT INTO ration.audit (at, actor, role, action, after, reason, request_id)
        VALUES (v_now, p_actor, p_role, 'bucket.rebased', json_build_object('table', v_table, 'rows', o_rebased), p_reason, p_request_id);
    END IF;
END $$;
