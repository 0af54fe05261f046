-- Policy changes of every kind, overrides, sweeps, callers, instances and the audit: the functions and views that are new or
-- changed, in the order in which each finds what it needs.

UPDATE ration.schema_version SET minor = 2;

-- audit_hash_v1: the hash of an audit row, over every column but the hash itself: so over the hash of the row before, too.
--
-- Arguments: the row. Answers: SHA-256 of 'ration.audit v1' and then, for each column in the order below, its length in
--        bytes (4 bytes, the highest first; -1 for NULL) and its text in UTF-8: numbers in decimal, JSON as it is stored.
--        Of the previous hash it takes the bytes themselves.
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.audit_hash_v1(p_row ration.audit)
RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT sha256('ration.audit v1'::bytea
                  || string_agg(coalesce(int4send(length(f.value)) || f.value, int4send(-1)), ''::bytea ORDER BY f.place))
    FROM unnest(ARRAY[
        convert_to((p_row).id::text, 'UTF8'), convert_to((p_row).at::text, 'UTF8'),
        convert_to((p_row).actor, 'UTF8'), convert_to((p_row).role, 'UTF8'), convert_to((p_row).action, 'UTF8'),
        convert_to((p_row).policy, 'UTF8'),
        convert_to((p_row).version_before::text, 'UTF8'), convert_to((p_row).version_after::text, 'UTF8'),
        convert_to((p_row).before::text, 'UTF8'), convert_to((p_row).after::text, 'UTF8'),
        convert_to((p_row).reason, 'UTF8'), convert_to((p_row).request_id, 'UTF8'),
        convert_to((p_row).settled::text, 'UTF8'), convert_to((p_row).clamped::text, 'UTF8'),
        (p_row).previous]) WITH ORDINALITY AS f (value, place);
END;

-- audit_chain_v1: the trigger before every INSERT into ration.audit: it appends the row to the chain. The row's id, previous
-- and hash are given here, whatever the statement said of them.
--
-- Answers: the row as number head + 1, with the head's hash as its previous (none, of no bytes, for the first row) and its own.
-- Units: none. Clock: none.
-- Locks: the row of ration.audit_head until the transaction ends: rows are one after the other in the order in which their
--        transactions commit. It is the last lock that a change takes: an audit row is written when everything else is.
-- SQLSTATE: P0002 the head is gone. Nothing can be changed then before its owner has looked into it.
CREATE OR REPLACE FUNCTION ration.audit_chain_v1()
RETURNS trigger LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    SELECT h.id + 1, h.hash INTO STRICT NEW.id, NEW.previous FROM ration.audit_head AS h FOR UPDATE;
    NEW.hash := ration.audit_hash_v1(NEW);
    UPDATE ration.audit_head SET id = NEW.id, hash = NEW.hash;
    RETURN NEW;
END $$;

-- audit_refuse_v1: the trigger before every UPDATE, DELETE and TRUNCATE of ration.audit, and before DELETE and TRUNCATE of its
-- head: it refuses them, the owner's too. Roles of the service lack the privileges already.
--
-- Units: none. Clock: none. Locks: none.
-- SQLSTATE: 42501 always.
CREATE OR REPLACE FUNCTION ration.audit_refuse_v1()
RETURNS trigger LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = format('%s of ration.%s: the audit is only ever added to', TG_OP, TG_TABLE_NAME);
END $$;

-- audit_verify_v1: walks a piece of the audit's chain and tells the first row that is not as it was written.
--
-- Arguments: the row to begin behind and its hash, as the piece before answered them: 0 and no bytes begin the chain. At most
--        p_rows rows, 1 to 10,000, are walked.
-- Answers: o_rows how many were walked, o_last and o_hash the last one of them; o_done that no row follows, so that the
--        chain's end was compared with its head. o_fault, when something is wrong, and o_row, where:
--        changed  the row is not what its hash, or that of the row behind it, was made of;
--        missing  the row, and maybe more behind it, was taken out;
--        cut      the row and all behind it were taken off the end: the head knows of them;
--        added    the row was put behind the head without being chained;
--        headless the head is gone.
--        NULL: what was walked is whole.
-- Units: rows.
-- Clock: none. Locks: none; it sees the chain and its head as of one instant.
-- SQLSTATE: RN004 p_rows is out of its range.
CREATE OR REPLACE FUNCTION ration.audit_verify_v1(
    p_after bigint, p_hash bytea, p_rows int,
    OUT o_rows int, OUT o_last bigint, OUT o_hash bytea, OUT o_done boolean, OUT o_fault text, OUT o_row bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_row  ration.audit;
    v_head ration.audit_head;
BEGIN
    IF (p_rows BETWEEN 1 AND 10000) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'p_rows has to be 1 to 10000';
    END IF;
    o_rows := 0;
    o_last := p_after;
    o_hash := p_hash;
    FOR v_row IN SELECT a.* FROM ration.audit AS a WHERE a.id > p_after ORDER BY a.id LIMIT p_rows LOOP
        -- Numbers may have gaps in what was written before there was a chain: only the hash tells that a row is missing.
        IF v_row.previous IS DISTINCT FROM o_hash AND v_row.id > o_last + 1 THEN
            o_fault := 'missing';
            o_row := o_last + 1;
        ELSIF v_row.hash IS DISTINCT FROM ration.audit_hash_v1(v_row) THEN
            o_fault := 'changed';
            o_row := v_row.id;
        ELSIF v_row.previous IS DISTINCT FROM o_hash THEN
            -- Whoever changed the row before has hashed it anew: the row behind it still has the hash that it had.
            o_fault := 'changed';
            o_row := o_last;
        END IF;
        EXIT WHEN o_fault IS NOT NULL;
        o_rows := o_rows + 1;
        o_last := v_row.id;
        o_hash := v_row.hash;
    END LOOP;
    o_done := o_fault IS NULL AND o_rows < p_rows;
    IF NOT o_done THEN
        RETURN;
    END IF;
    SELECT h.* INTO v_head FROM ration.audit_head AS h;
    CASE
        WHEN v_head.id IS NULL THEN
            o_fault := 'headless';
            o_row := o_last;
        WHEN v_head.id > o_last THEN
            o_fault := 'cut';
            o_row := o_last + 1;
        WHEN v_head.id < o_last THEN
            o_fault := 'added';
            o_row := v_head.id + 1;
        WHEN v_head.hash <> o_hash THEN
            o_fault := 'changed';
            o_row := o_last;
        ELSE NULL;
    END CASE;
END $$;

-- clean_instances_v1: takes instances off the list that have not been seen for 10 minutes.
--
-- Answers: how many were deleted.
-- Units: rows. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the rows it deletes, by SKIP LOCKED.
-- SQLSTATE: RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.clean_instances_v1(p_now bigint DEFAULT NULL)
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_now constant bigint := ration.clock_v1(p_now);
    v_deleted      int;
BEGIN
    DELETE FROM ration.instance AS d
    USING (SELECT i.id FROM ration.instance AS i WHERE abs(v_now - i.seen_at) > 600000000 FOR UPDATE SKIP LOCKED) AS lost
    WHERE d.id = lost.id;
    GET DIAGNOSTICS v_deleted = ROW_COUNT;
    RETURN v_deleted;
END $$;

-- clean_shadow_v1: deletes the report on one policy version that has decided nothing as a shadow for 7 days, and with it the
-- names of those whom it would have denied.
--
-- Answers: whether there was one: call it again until there is none.
-- Units: none. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the version's sum, by SKIP LOCKED, then its keys, at most 1,000.
-- SQLSTATE: RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.clean_shadow_v1(p_now bigint DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_before constant bigint := ration.clock_v1(p_now) - 7 * 86400000000;
    v_old             ration.shadow_total;
BEGIN
    SELECT t.* INTO v_old FROM ration.shadow_total AS t WHERE t.last_at < v_before LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM ration.shadow_denial AS d WHERE d.policy = v_old.policy AND d.version = v_old.version;
    DELETE FROM ration.shadow_total AS t WHERE t.policy = v_old.policy AND t.version = v_old.version;
    RETURN true;
END $$;

-- close_sweep_v1: ends the sweep of a policy, if one is open, and writes into the audit what came of it: how many balances were
-- settled and how many of these a change cut, by the sweep itself and by decisions.
--
-- Arguments: the policy, the instant of the end, what ended it.
-- Units: microseconds. Clock: none, the instant is given.
-- Locks: the policy's sweep. The caller holds the row of ration.policy_set: policy changes write to the audit behind that too.
-- SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.close_sweep_v1(p_policy int, p_at bigint, p_reason text)
RETURNS void LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    WITH ended AS (
        DELETE FROM ration.sweep AS s WHERE s.policy = p_policy RETURNING s.version, s.settled, s.clamped
    ), carried AS (
        DELETE FROM ration.carried AS c WHERE c.policy = p_policy RETURNING c.version, c.settled, c.clamped
    )
    INSERT INTO ration.audit (at, actor, action, policy, version_after, reason, request_id, settled, clamped)
    SELECT p_at, 'ration', 'policy.swept', p.id, e.version, p_reason, '', e.settled + d.settled, e.clamped + d.clamped
    FROM ended AS e
    JOIN ration.policy AS p ON p.number = p_policy
    -- A decision under the version before may have been late: what it settled was another sweep's.
    CROSS JOIN (SELECT coalesce(sum(c.settled), 0) AS settled, coalesce(sum(c.clamped), 0) AS clamped
                FROM carried AS c JOIN ended USING (version)) AS d;
END $$;

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

-- key_figures_v1: what keys hold at an instant, as the next decision would find them. For looks at the state; nothing is
-- locked or charged.
--
-- Arguments: distinct keys, each with the number of the policy that counts it (locate_key_v1, policy_keys_v1).
-- Answers: a row for each key: whether it is stored at all (an absent key is an idle one), and under which version it was
--        settled last (none for slots, which have no version); what is left of the limit, below zero for a debt; the time until
--        nothing is spent any more; how far the stored state is ahead of the clock.
-- Units: tokens, microseconds from p_now. Clock: none, the instant is given. Locks: none.
-- SQLSTATE: RN001 RN002 from ready_v1.
CREATE OR REPLACE FUNCTION ration.key_figures_v1(p_shard int, p_policies int[], p_keys uuid[], p_now bigint)
RETURNS TABLE (policy int, key uuid, stored boolean, settled_version int, remaining bigint, reset_after bigint, ahead bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM ration.ready_v1(true, NULL);
    RETURN QUERY
    SELECT c.policy, c.key, c.writer IS NOT NULL, s.version, f.remaining, f.reset_after,
           -- An entry of a log that counts in segments stands at the end of its segment.
           greatest(0, CASE WHEN c.place <= 4 THEN c.at - p_now WHEN c.place <= 6 THEN c.at - greatest(p_now, c.mark) END)
    FROM ration.policy_set AS g
    CROSS JOIN LATERAL ration.decide_read_v1(p_shard, g.generation, p_policies, p_keys, array_fill(true, ARRAY[cardinality(p_keys)]), p_now) AS r
    CROSS JOIN LATERAL unnest(
        p_policies, p_keys, r.o_places, r.o_writers, r.o_capacities, r.o_n, r.o_d, r.o_spans, r.o_sliding, r.o_base, r.o_at, r.o_previous,
        r.o_marks, r.o_logs)
        WITH ORDINALITY AS c (policy, key, place, writer, capacity, n, d, span, sliding, base, at, previous, mark, entries, n_th)
    CROSS JOIN LATERAL ration.decide_figures_v1(p_now, c.place, NULL, c.capacity, 0, c.n, c.d, c.span, c.sliding, c.base, c.at, c.previous,
                                                c.mark, ROW (c.entries)::ration.log_entries) AS f
    LEFT JOIN LATERAL (
        SELECT t.version FROM ration.bucket_fast AS t WHERE c.place = 1 AND t.shard = p_shard AND t.key = c.key
        UNION ALL SELECT t.version FROM ration.bucket_durable AS t WHERE c.place = 2 AND t.shard = p_shard AND t.key = c.key
        UNION ALL SELECT t.version FROM ration.window_fast AS t WHERE c.place = 3 AND t.shard = p_shard AND t.key = c.key
        UNION ALL SELECT t.version FROM ration.window_durable AS t WHERE c.place = 4 AND t.shard = p_shard AND t.key = c.key
        UNION ALL SELECT t.version FROM ration.log_fast AS t WHERE c.place = 5 AND t.shard = p_shard AND t.key = c.key
        UNION ALL SELECT t.version FROM ration.log_durable AS t WHERE c.place = 6 AND t.shard = p_shard AND t.key = c.key) AS s ON true
    WHERE c.place IS NOT NULL  -- of policies that are gone by now
    ORDER BY c.n_th;
END $$;

-- leave_v1: an instance of the service ends in good order: nobody waits for it any more, and it is listed no longer.
--
-- Answers: whether it was listed.
-- Units: none. Clock: none. Locks: the instance's row. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.leave_v1(p_id uuid)
RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    DELETE FROM ration.instance AS i WHERE i.id = p_id;
    RETURN FOUND;
END $$;

-- locate_key_v1: where the state of a caller's key is kept: under its policy, or under the override that has another limit for
-- it.
--
-- Arguments: a policy's id and the caller's attributes by name, as of bucket_key.
-- Answers: the number of the policy that counts it and the key there; no number: there is no such policy; no key: an attribute
--        of its key is missing. o_override: the number of the key's override, of whatever action.
-- Units: none. Clock: none. Locks: none.
-- SQLSTATE: 22P02 from bucket_key.
CREATE OR REPLACE FUNCTION ration.locate_key_v1(
    p_policy text, p_attributes jsonb, OUT o_number int, OUT o_key uuid, OUT o_override bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_limited text;
BEGIN
    SELECT p.number, ration.bucket_key(p_policy, p_attributes) INTO o_number, o_key
    FROM ration.policy AS p WHERE p.id = p_policy AND p.parent IS NULL AND p.mode <> 'deleted';
    SELECT o.number, coalesce(o.limited, o_number), l.id INTO o_override, o_number, v_limited
    FROM (SELECT o_number AS policy, o_key AS key) AS k
    LEFT JOIN ration.override AS o ON o.policy = k.policy AND o.key = k.key
    LEFT JOIN ration.policy AS l ON l.number = o.limited;
    IF v_limited IS NOT NULL THEN
        o_key := ration.bucket_key(v_limited, p_attributes);
    END IF;
END $$;

-- log_rebased_v1: a log whose entries behind an instant stand at it.
--
-- Arguments: pairs of instant and tokens, ascending by instant; the instant.
-- Units: tokens, microseconds. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.log_rebased_v1(p_entries bigint[], p_at bigint)
RETURNS bigint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce(array_agg(v.value ORDER BY e.at, v.place), '{}')
    FROM (SELECT least(p_entries[2 * i - 1], p_at) AS at, sum(p_entries[2 * i])::bigint AS tokens
          FROM generate_series(1, cardinality(p_entries) / 2) AS i GROUP BY 1) AS e
    CROSS JOIN LATERAL (VALUES (1, e.at), (2, e.tokens)) AS v (place, value);
END;

-- open_sweep_v1: begins the sweep of a change: from here on sweep_v1 settles what the policy has kept under older versions.
-- What was being swept for an earlier change of the policy goes on as this sweep; the audit says how far the earlier one came.
--
-- Arguments: the policy and its version that makes the change, both of which are in force in this transaction; the instant of
--        the change.
-- Answers: nothing. Windows and logs that are kept are counted on as they stand: there is nothing to sweep.
-- Units: microseconds. Clock: none, the instant is given.
-- Locks: the policy's sweep. The caller holds the row of ration.policy_set, and has not written to the audit yet.
-- SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.open_sweep_v1(p_policy int, p_version int, p_at bigint)
RETURNS void LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF EXISTS (SELECT FROM ration.policy AS p JOIN ration.policy_version AS v USING (number)
               WHERE p.number = p_policy AND v.version = p_version
                 AND (p.algorithm = 'token_bucket' OR v.balances IN ('reset', 'restart'))) THEN
        PERFORM ration.close_sweep_v1(p_policy, p_at, format('overtaken by version %s', p_version));
        INSERT INTO ration.sweep (policy, version, began_at) VALUES (p_policy, p_version, p_at);
    END IF;
END $$;

-- state_table_v1: the table of a place in the lock order (state_place_v1), in which a key has one row.
--
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.state_table_v1(p_place int)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (ARRAY['bucket_fast', 'bucket_durable', 'window_fast', 'window_durable', 'log_fast', 'log_durable', 'slot_parent'])[p_place];

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

-- rebase_v1: sets to now what is ahead of the clock, as a clock that stepped forward and back leaves it: until then such a
-- bucket earns nothing and such a window does not end. One stretch of one table a call, with an audit row (bucket.rebased)
-- where it changed anything. Begin with place 0: the instants of the policies themselves, or keys that cross them get ahead
-- again.
--
-- Arguments: p_place is 0 for policies, else as of state_place_v1, 7 for slots; the shard, the key to go on behind (NULL: from
--        the first), rows to examine. actor, role, reason and request id are for the audit.
-- Answers: how many rows were set back, and the last key examined, NULL when the end of the place was reached.
-- Units: rows. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: of place 0 the row of ration.policy_set; else the rows it changes, ascending by key.
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

-- report_shadow_v1: adds to the report on a policy version what an instance has seen of it while it was a shadow: how many
-- requests it decided, how many of them it would have denied, and whose they were.
--
-- Arguments: the lists have an entry for each key of which some were denied; p_who are the values of the policy's `per`.
--        p_denied counts all, those of keys without an entry too.
--        The first 1,000 keys of a version are kept with their counts; what others were denied is in the sum alone.
-- Units: requests, microseconds. Clock: none: the instants are those of the decisions.
-- Locks: the version's sum, then rows of its keys.
-- SQLSTATE: RN004 lists of different lengths, or longer than 1,000.
CREATE OR REPLACE FUNCTION ration.report_shadow_v1(
    p_policy int, p_version int, p_decided bigint, p_denied bigint, p_first_at bigint, p_last_at bigint,
    p_keys uuid[], p_who text[], p_key_denied bigint[], p_key_first_at bigint[], p_key_last_at bigint[])
RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c_keys_max constant int := 1000;
    v_count    constant int := cardinality(p_keys);
BEGIN
    IF (v_count <= c_keys_max AND ration.list_v1(p_keys, v_count) AND ration.list_v1(p_who, v_count)
        AND ration.list_v1(p_key_denied, v_count) AND ration.list_v1(p_key_first_at, v_count)
        AND ration.list_v1(p_key_last_at, v_count)) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'lists of keys have one length, at most 1000';
    END IF;
    -- First, so that one report on a version is added after the other and the keys are counted exactly.
    INSERT INTO ration.shadow_total AS t (policy, version, decided, denied, first_at, last_at)
    VALUES (p_policy, p_version, p_decided, p_denied, p_first_at, p_last_at)
    ON CONFLICT (policy, version) DO UPDATE
    SET decided = t.decided + excluded.decided, denied = t.denied + excluded.denied,
        first_at = least(t.first_at, excluded.first_at), last_at = greatest(t.last_at, excluded.last_at);
    UPDATE ration.shadow_denial AS d
    SET denied = d.denied + k.denied, first_at = least(d.first_at, k.first_at), last_at = greatest(d.last_at, k.last_at)
    FROM unnest(p_keys, p_key_denied, p_key_first_at, p_key_last_at) AS k (key, denied, first_at, last_at)
    WHERE d.policy = p_policy AND d.version = p_version AND d.key = k.key;
    INSERT INTO ration.shadow_denial (policy, version, key, who, denied, first_at, last_at)
    SELECT p_policy, p_version, k.key, k.who::jsonb, k.denied, k.first_at, k.last_at
    FROM unnest(p_keys, p_who, p_key_denied, p_key_first_at, p_key_last_at) WITH ORDINALITY
         AS k (key, who, denied, first_at, last_at, place)
    WHERE NOT EXISTS (SELECT FROM ration.shadow_denial AS d WHERE d.policy = p_policy AND d.version = p_version AND d.key = k.key)
    ORDER BY k.place
    LIMIT c_keys_max - (SELECT count(*) FROM ration.shadow_denial AS d WHERE d.policy = p_policy AND d.version = p_version);
END $$;

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
    v_policy     ration.policy;
    v_table      text;
    v_place      int;
    v_now        bigint;
    v_left       bigint;  -- of the limit, before
    k            record;
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
    SELECT p.* INTO v_policy FROM ration.policy AS p WHERE p.number = k.o_number;
    v_place := ration.state_place_v1(v_policy.algorithm, v_policy.strict, v_policy.durability);
    v_table := ration.state_table_v1(v_place);
    o_outcome := CASE WHEN k.o_number IS NULL THEN 'unknown' WHEN k.o_key IS NULL THEN 'incomplete'
                      WHEN v_place = 7 AND NOT v_full THEN 'impossible' END;
    IF o_outcome IS NOT NULL THEN
        RETURN;
    END IF;

    LOOP
        r := ration.decide_read_v1(p_shard, v_generation, ARRAY[k.o_number], ARRAY[k.o_key], ARRAY[true], ration.clock_v1(p_now));
        l := ration.decide_lock_v1(p_shard, 'wait', ARRAY[true], r.o_places, ARRAY[k.o_number], ARRAY[k.o_key], r.o_writers);
        EXIT WHEN cardinality(l.o_rows) = 1;  -- else the cleaner took it before it was locked
    END LOOP;
    v_now := ration.clock_v1(p_now);
    SELECT f.remaining INTO v_left FROM ration.key_figures_v1(p_shard, ARRAY[k.o_number], ARRAY[k.o_key], v_now) AS f;

    IF v_place <= 2 THEN
        EXECUTE format('UPDATE ration.%I SET balance = $1, at = greatest(at, $2), version = $3, took = 0 WHERE ctid = $4', v_table)
            USING CASE WHEN v_full THEN v_policy.capacity_units ELSE 0 END, v_now, v_policy.version, l.o_rows[1];
    ELSIF v_place <= 4 THEN
        EXECUTE format('UPDATE ration.%I SET start = greatest(start, $1), current = $2, previous = 0, version = $3 WHERE ctid = $4', v_table)
            USING ration.window_start_v1(v_now, v_policy.span), CASE WHEN v_full THEN 0 ELSE v_policy.capacity END, v_policy.version,
                  l.o_rows[1];
    ELSIF v_place <= 6 THEN
        EXECUTE format('UPDATE ration.%I SET entries = CASE WHEN $1 THEN ''{}'' ELSE ARRAY[greatest($2, entries[cardinality(entries) - 1]), $3] END,
                                             version = $4 WHERE ctid = $5', v_table)
            USING v_full, ration.log_mark_v1(v_now, ration.segment_v1(v_policy)), v_policy.capacity, v_policy.version, l.o_rows[1];
    ELSE
        DELETE FROM ration.slot AS s WHERE s.shard = p_shard AND s.key = k.o_key AND s.expires_at > v_now AND p_release;
        GET DIAGNOSTICS o_released = ROW_COUNT;
        IF EXISTS (SELECT FROM ration.slot AS s WHERE s.shard = p_shard AND s.key = k.o_key AND s.expires_at > v_now) THEN
            o_outcome := 'slots';
            RETURN;
        END IF;
    END IF;
    o_outcome := 'reset';
    INSERT INTO ration.audit (at, actor, role, action, policy, before, after, reason, request_id)
    SELECT v_now, p_actor, p_role, 'bucket.reset', p_policy, json_build_object('attributes', p_attributes, 'remaining', v_left),
           json_build_object('attributes', p_attributes, 'remaining', f.remaining, 'released', o_released), p_reason, p_request_id
    FROM ration.key_figures_v1(p_shard, ARRAY[k.o_number], ARRAY[k.o_key], v_now) AS f;
END $$;

-- The audit becomes a chain: what it has so far is chained as it stands, and from here on every row by its trigger. The chain
-- gives the numbers too: a sequence leaves gaps, and in a chain a gap should mean something.
LOCK TABLE ration.audit IN SHARE ROW EXCLUSIVE MODE;
DO $$
DECLARE
    v_row  ration.audit;
    v_id   bigint := 0;
    v_hash bytea  := '';
BEGIN
    FOR v_row IN SELECT a.* FROM ration.audit AS a ORDER BY a.id LOOP
        v_id := v_row.id;
        v_row.previous := v_hash;
        v_hash := ration.audit_hash_v1(v_row);
        UPDATE ration.audit SET previous = v_row.previous, hash = v_hash WHERE id = v_id;
    END LOOP;
    INSERT INTO ration.audit_head (id, hash) VALUES (v_id, v_hash);
END $$;
ALTER TABLE ration.audit ALTER COLUMN id DROP IDENTITY, ALTER COLUMN previous SET NOT NULL, ALTER COLUMN hash SET NOT NULL;
CREATE TRIGGER audit_chain BEFORE INSERT ON ration.audit FOR EACH ROW EXECUTE FUNCTION ration.audit_chain_v1();
CREATE TRIGGER audit_refuse BEFORE UPDATE OR DELETE OR TRUNCATE ON ration.audit FOR EACH STATEMENT EXECUTE FUNCTION ration.audit_refuse_v1();
CREATE TRIGGER audit_refuse BEFORE DELETE OR TRUNCATE ON ration.audit_head FOR EACH STATEMENT EXECUTE FUNCTION ration.audit_refuse_v1();

-- Who may do what. Everything else is the owner's alone.
--   ration_service   the process: runs the decision functions, reads policies, slots and outcomes of operation ids
--   ration_operator  people on duty: what readers see, and upkeep by hand. Policies are changed over HTTP, where they are checked
--   ration_reader    dashboards: reads policies, their history and what every key has used
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ration FROM PUBLIC;
GRANT USAGE ON SCHEMA ration TO ration_service, ration_operator, ration_reader;

GRANT SELECT ON ration.schema_version, ration.policy_set, ration.policy, ration.policy_version, ration.audit, ration.state_loss
    TO ration_service, ration_operator, ration_reader;
GRANT SELECT ON ration.operation, ration.slot_parent, ration.slot TO ration_service;
GRANT SELECT ON ration.bucket_now, ration.window_now, ration.log_now, ration.slot_now
    TO ration_service, ration_operator, ration_reader;
-- Called by the views with the rights of whoever looks.
GRANT EXECUTE ON FUNCTION ration.bucket_key, ration.key_field_v1, ration.key_address_v1, ration.canonical_target_v1,
    ration.fold_case_v1, ration.settled_v1, ration.wait_v1, ration.clock_v1, ration.carry_v1, ration.balance_at_v1,
    ration.window_start_v1, ration.window_at_v1, ration.window_room_v1, ration.window_wait_v1, ration.log_live_v1,
    ration.log_wait_v1, ration.decide_figures_v1, ration.instant_v1
    TO ration_service, ration_operator, ration_reader;

GRANT EXECUTE ON FUNCTION ration.clean_v1, ration.clean_windows_v1, ration.clean_logs_v1, ration.clean_slots_v1,
    ration.clean_slot_parents_v1, ration.clean_operations_v1, ration.recover_v1
    TO ration_service, ration_operator;
GRANT EXECUTE ON FUNCTION ration.take_v1, ration.take_durable_v1, ration.take_new_v1, ration.take_new_durable_v1,
    ration.decide_v1, ration.settle_v1, ration.release_slot_v1, ration.renew_slot_v1, ration.put_policy_v1
    TO ration_service;

-- The audit is written by the functions above alone, with their owner's rights; everybody may check it.
GRANT SELECT ON ration.audit_head TO ration_service, ration_operator, ration_reader;
GRANT EXECUTE ON FUNCTION ration.audit_hash_v1, ration.audit_verify_v1 TO ration_service, ration_operator, ration_reader;

-- Instances tell of themselves, and of what shadows saw. Whom a shadow would have denied names accounts: no reader sees it.
GRANT EXECUTE ON FUNCTION ration.confirm_v1, ration.leave_v1, ration.report_shadow_v1 TO ration_service;
GRANT EXECUTE ON FUNCTION ration.clean_instances_v1, ration.clean_shadow_v1 TO ration_service, ration_operator;
GRANT EXECUTE ON FUNCTION ration.instances_v1 TO ration_service, ration_operator, ration_reader;
GRANT SELECT ON ration.shadow_total, ration.shadow_denial TO ration_service, ration_operator;

-- Keys are looked at and set by hand over HTTP, where it is known who asks.
GRANT EXECUTE ON FUNCTION ration.locate_key_v1, ration.policy_keys_v1, ration.key_figures_v1, ration.reset_bucket_v1, ration.rebase_v1
    TO ration_service;
