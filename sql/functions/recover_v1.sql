-- recover_v1: after a crash emptied the unlogged tables, records the loss, sets what the state of fast policies starts
-- from, and begins a new incarnation. Until it has committed, every call on fast state ends in RN002.
--
-- Answers: whether a loss was found; false when another session has recovered already or nothing was lost.
--        Idle states under afterLoss "idle" stay as they are; under "empty" they hold nothing at the instant of the loss:
--        an empty bucket, or the whole limit charged at that instant. Slots are always logged: none of them was lost.
-- Units: none. Clock: clock_timestamp(), or p_now on a test clock.
-- Locks: the row of ration.policy_set, exclusively: one session recovers, policy changes wait.
-- SQLSTATE: RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.recover_v1(p_now bigint DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_lost  uuid;
    v_new   uuid := gen_random_uuid();
    v_now   bigint;
    v_empty int;
    v_fast  int;
BEGIN
    SELECT s.incarnation INTO v_lost FROM ration.policy_set AS s FOR UPDATE;
    IF EXISTS (SELECT FROM ration.incarnation_marker AS m WHERE m.incarnation = v_lost) THEN
        RETURN false;
    END IF;
    v_now := ration.clock_v1(p_now);
    SELECT count(*) INTO v_fast FROM ration.policy AS p
    WHERE p.durability = 'fast' AND p.algorithm <> 'concurrency' AND p.mode <> 'deleted';
    WITH empty AS (
        -- Nothing goes back behind where it stood; an empty log stands nowhere.
        UPDATE ration.policy_version AS v
        SET idle_balance = 0,
            idle_at = CASE WHEN ration.state_place_v1(p.algorithm, p.strict, p.durability) >= 5 AND v.idle_balance = v.capacity_units
                           THEN v_now ELSE greatest(v_now, v.idle_at) END
        FROM ration.policy AS p
        WHERE v.number = p.number AND v.version = p.version AND p.durability = 'fast' AND p.algorithm <> 'concurrency'
          AND p.mode <> 'deleted' AND v.content ->> 'afterLoss' = 'empty'
        RETURNING v.number, v.idle_at
    )
    UPDATE ration.policy AS p SET idle_balance = 0, idle_at = e.idle_at FROM empty AS e WHERE p.number = e.number;
    GET DIAGNOSTICS v_empty = ROW_COUNT;

    -- A marker of another incarnation is possible where the tables were copied: rows beside it belong to no life of ours.
    DELETE FROM ration.incarnation_marker;
    DELETE FROM ration.bucket_fast;
    DELETE FROM ration.window_fast;
    DELETE FROM ration.log_fast;
    INSERT INTO ration.incarnation_marker (incarnation) VALUES (v_new);
    UPDATE ration.policy_set SET incarnation = v_new;
    INSERT INTO ration.state_loss (found_at, lost_incarnation, new_incarnation, policies_idle, policies_empty)
    VALUES (v_now, v_lost, v_new, v_fast - v_empty, v_empty);
    RETURN true;
END $$;
