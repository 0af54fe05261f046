-- reset_bucket_v1: makes one key's state full (nothing spent) or empty (all spent) by an operator's word, of whatever
-- algorithm, with its audit row (bucket.reset) in the same transaction.
--
-- Arguments: the shard; a policy's id and the caller's attributes as of bucket_key; p_to full | empty; p_release says that the
--        live slots of a concurrency key may be taken from the work that holds them. actor, role, reason and request id are for
--        the audit.
-- Answers: o_outcome reset | unknown (no such policy) | incomplete (an attribute of its key is missing) | slots (there are live
--        slots, and p_release does not allow to end them) | impossible (a concurrency key cannot be made empty); only the first
--        changes anything. o_released: slots that were ended.
-- Units: none. Clock: clock_timestamp(), read under the lock; p_now instead, where the database is marked as a test clock.
-- Locks: the row of ration.policy_set, shared, so that the policy stays the same; then the key's row, which is inserted as idle
--        where it is absent.
-- SQLSTATE: RN001 RN002 from ready_v1, RN003 from clock_v1; RN004 p_to is neither; 22P02 from bucket_key.
CREATE OR REPLACE FUNCTION ration.reset_bucket_v1(
    p_shard int, p_policy text, p_attributes jsonb, p_to text, p_release boolean,
    p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL,
    OUT o_outcome text, OUT o_released int)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_full constant boolean := CASE p_to WHEN 'full' THEN true WHEN 'empty' THEN false END;
    v_generation bigint;
    v_table      text;
    v_now        bigint;
    v_left       bigint;  -- of the limit, before
    v_version    int;     -- under which the row was settled last; NULL for slots
    k            record;
    p            record;
    r            record;
    l            record;
BEGIN
    IF v_full IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a key is reset to full or to empty';
    END IF;
    PERFORM ration.ready_v1(true, NULL);
    PERFORM ration.commit_durably_v1();
    o_released := 0;
    SELECT s.generation INTO v_generation FROM ration.policy_set AS s FOR SHARE;
    k := ration.locate_key_v1(p_policy, p_attributes);
    SELECT f.version, f.capacity, f.capacity_units, f.span, ration.segment_v1(f) AS segment,
           ration.state_place_v1(f.algorithm, f.strict, f.durability) AS place INTO p
    FROM ration.policy AS f WHERE f.number = k.o_number;
    v_table := ration.state_table_v1(p.place);
    o_outcome := CASE WHEN k.o_number IS NULL THEN 'unknown' WHEN k.o_key IS NULL THEN 'incomplete'
                      WHEN p.place = 7 AND NOT v_full THEN 'impossible' END;
    IF o_outcome IS NOT NULL THEN
        RETURN;
    END IF;

    LOOP
        r := ration.decide_read_v1(p_shard, v_generation, ARRAY[k.o_number], ARRAY[k.o_key], ARRAY[true], ration.clock_v1(p_now));
        l := ration.decide_lock_v1(p_shard, 'wait', ARRAY[true], r.o_places, ARRAY[k.o_number], ARRAY[k.o_key], r.o_writers);
        EXIT WHEN cardinality(l.o_rows) = 1;  -- else the cleaner took it before it was locked
    END LOOP;
    v_now := ration.clock_v1(p_now);
    SELECT f.remaining, f.settled_version INTO v_left, v_version FROM ration.key_figures_v1(p_shard, ARRAY[k.o_number], ARRAY[k.o_key], v_now) AS f;

    IF p.place <= 2 THEN
        EXECUTE format('UPDATE ration.%I SET balance = $1, at = greatest(at, $2), version = $3, took = 0 WHERE ctid = $4', v_table)
            USING CASE WHEN v_full THEN p.capacity_units ELSE 0 END, v_now, p.version, l.o_rows[1];
    ELSIF p.place <= 4 THEN
        EXECUTE format('UPDATE ration.%I SET start = greatest(start, $1), current = $2, previous = 0, version = $3 WHERE ctid = $4', v_table)
            USING ration.window_start_v1(v_now, p.span), CASE WHEN v_full THEN 0 ELSE p.capacity END, p.version, l.o_rows[1];
    ELSIF p.place <= 6 THEN
        EXECUTE format('UPDATE ration.%I SET entries = CASE WHEN $1 THEN ''{}'' ELSE ARRAY[greatest($2, entries[cardinality(entries) - 1]), $3] END,
                                             version = $4 WHERE ctid = $5', v_table)
            USING v_full, ration.log_mark_v1(v_now, p.segment), p.capacity, p.version, l.o_rows[1];
    ELSE
        DELETE FROM ration.slot AS s WHERE s.shard = p_shard AND s.key = k.o_key AND s.expires_at > v_now AND p_release;
        GET DIAGNOSTICS o_released = ROW_COUNT;
        IF EXISTS (SELECT FROM ration.slot AS s WHERE s.shard = p_shard AND s.key = k.o_key AND s.expires_at > v_now) THEN
            o_outcome := 'slots';
            RETURN;
        END IF;
    END IF;
    IF v_version < p.version THEN
        -- Settled, and not by the change: nothing of what it held is left to be cut.
        PERFORM ration.append_carried_v1(ARRAY[k.o_number], ARRAY[v_version], ARRAY[p.version], ARRAY[false]);
    END IF;
    o_outcome := 'reset';
    INSERT INTO ration.audit (at, actor, role, action, policy, before, after, reason, request_id)
    SELECT v_now, p_actor, p_role, 'bucket.reset', p_policy, json_build_object('attributes', p_attributes, 'remaining', v_left),
           json_build_object('attributes', p_attributes, 'remaining', f.remaining, 'released', o_released), p_reason, p_request_id
    FROM ration.key_figures_v1(p_shard, ARRAY[k.o_number], ARRAY[k.o_key], v_now) AS f;
END $$;
