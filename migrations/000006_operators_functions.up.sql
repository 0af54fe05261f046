-- Policy changes of every kind, overrides, sweeps, callers, instances and the audit: the functions and views that are new or
-- changed, in the order in which each finds what it needs.

UPDATE ration.schema_version SET minor = 2;

DROP VIEW ration.bucket_now;

DROP FUNCTION ration.balance_at_v1, ration.carry_v1, ration.decide_read_v1, ration.decide_write_v1, ration.put_policy_v1;

-- append_carried_v1: tells the sweeps that are open what a call has settled of their balances. Appended, a row a call and sweep:
-- decisions do not wait for each other here.
--
-- Arguments: rows of older versions that the call writes, in arrays or in none: policy, the version before, the version now,
--        whether a change cut the balance on the way.
-- Units: none. Clock: none. Locks: none; the caller has locked the rows, so that a sweep of them cannot end before it does.
-- SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.append_carried_v1(p_policies int[], p_from int[], p_to int[], p_clamped boolean[])
RETURNS void LANGUAGE plpgsql VOLATILE  -- which keeps the plan, as LANGUAGE sql does not
AS $$
BEGIN
    INSERT INTO ration.carried (policy, version, settled, clamped)
    SELECT s.policy, s.version, count(*), count(*) FILTER (WHERE c.clamped)
    FROM unnest(p_policies, p_from, p_to, p_clamped) AS c (policy, before, now, clamped)
    JOIN ration.sweep AS s ON s.policy = c.policy AND c.before < s.version AND s.version <= c.now
    GROUP BY s.policy, s.version;
END $$;

-- effective_mode_v1: the mode in force of a policy: what its content says, but shadow where a kill switch lies over one that
-- enforces. The one home of that rule.
--
-- Arguments: the policy's id and the mode of its content.
-- Units: none. Clock: none; a switch lies until expire_v1 takes it away.
-- Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.effective_mode_v1(p_id text, p_mode text)
RETURNS text LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT CASE WHEN p_mode = 'enforce' AND EXISTS (SELECT FROM ration.kill_switch AS k WHERE starts_with(p_id, k.prefix)) THEN 'shadow'
                ELSE p_mode END;
END;

-- apply_kill_switch_v1: brings the modes in force up to the kill switches that lie: of policies whose ids begin with a prefix, and
-- of their overrides' limits.
--
-- Arguments: the prefix of a switch that was thrown or is no more; the generation of the change.
-- Units: none. Clock: none.
-- Locks: the rows of policies that it changes. The caller holds the row of ration.policy_set, and bumps its generation.
-- SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.apply_kill_switch_v1(p_prefix text, p_generation bigint)
RETURNS void LANGUAGE sql VOLATILE
BEGIN ATOMIC
    UPDATE ration.policy AS p SET mode = now.mode, generation = p_generation
    FROM (SELECT f.number, ration.effective_mode_v1(f.id, coalesce(v.content ->> 'mode', 'enforce')) AS mode
          FROM ration.policy AS f JOIN ration.policy_version AS v USING (number, version)
          WHERE starts_with(f.id, p_prefix) AND f.mode IN ('enforce', 'shadow')) AS now
    WHERE p.number = now.number AND p.mode <> now.mode;
END;

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
--        transactions commit. It is the last lock that a change takes; one that takes more behind it holds the row of
--        ration.policy_set before.
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

-- clamped_v1: a balance cut to what a bucket can hold and owe: minus to plus its capacity. The one home of that rule.
--
-- Units: balance and capacity in units of 1/d token. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.clamped_v1(p_balance numeric, p_capacity_units bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN least(p_capacity_units, greatest(-p_capacity_units, p_balance))::bigint;

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
-- Answers: how many it deleted, 1 or 0: call it again until there is none.
-- Units: none. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the version's sum, by SKIP LOCKED, then its keys, at most 1,000.
-- SQLSTATE: RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.clean_shadow_v1(p_now bigint DEFAULT NULL)
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_before constant bigint := ration.clock_v1(p_now) - 7 * 86400000000;
    v_old             ration.shadow_total;
BEGIN
    SELECT t.* INTO v_old FROM ration.shadow_total AS t WHERE t.last_at < v_before LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    DELETE FROM ration.shadow_denial AS d WHERE d.policy = v_old.policy AND d.version = v_old.version;
    DELETE FROM ration.shadow_total AS t WHERE t.policy = v_old.policy AND t.version = v_old.version;
    RETURN 1;
END $$;

-- close_sweep_v1: ends the sweep of a policy, if one is open, and writes into the audit what came of it: how many balances were
-- settled and how many of these a change cut, by the sweep itself and by calls (append_carried_v1).
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

-- commit_lazily_v1: makes the running transaction's COMMIT wait for no disk, where the session asks for no more than its own:
-- what is counted beside fast state, or done again when it is lost, is not worth a wait. commit_durably_v1 takes it back.
--
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.commit_lazily_v1()
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF current_setting('synchronous_commit') = 'on' THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
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

-- floor_div_v1: an exact quotient, rounded toward minus infinity. Numeric's own division rounds, and div cuts toward zero.
--
-- Arguments: whole numbers, the divisor above 0.
-- Units: none. Clock: none. Locks: none. SQLSTATE: 22012 from a divisor of 0.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.floor_div_v1(p_dividend numeric, p_divisor numeric)
RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN div(p_dividend, p_divisor) - CASE WHEN mod(p_dividend, p_divisor) < 0 THEN 1 ELSE 0 END;

-- converted_v1: what a balance is under the figures of the next version: as many tokens (keep), or the same fraction of the
-- capacity (scale); rounded toward minus infinity. The one home of that rule. The caller clamps it to the new capacity (clamped_v1).
--
-- Arguments: the rule, the balance and the figures under which it counts, the figures of the next version.
-- Units: balances and capacities in units of 1/d token of their version. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.converted_v1(
    p_balances text, p_balance bigint, p_d bigint, p_capacity_units bigint, p_new_d bigint, p_new_capacity_units bigint)
RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE p_balances WHEN 'scale' THEN ration.floor_div_v1(p_balance::numeric * p_new_capacity_units, p_capacity_units)
                       ELSE ration.floor_div_v1(p_balance::numeric * p_new_d, p_d) END;

-- create_token_v1: lets a caller in from now on who presents the secret of a new token, in one transaction with its audit row.
-- The owner's alone to call: whoever may make tokens may do everything.
--
-- Arguments: p_role viewer | operator | admin, NULL for a gateway. p_scope is a gateway's: an object of lists of patterns,
--        accounts, operations and regions; a list that is absent allows all. p_secret is the SHA-256 of the secret, which has
--        256 random bits and is told to nobody but the caller. p_life is how long it lets in, NULL: until it is revoked.
--        p_actor is who makes it.
-- Answers: its number and its instants; o_expires_at is NULL without p_life.
-- Units: microseconds. Clock: clock_timestamp(), or p_now on a test clock.
-- Locks: none but the audit's.
-- SQLSTATE: RN003 from clock_v1; RN004 a life below 1; 23514 another bound of the table; 54000 there are 10,000 tokens that let
--           in, all of which each instance keeps in memory.
CREATE OR REPLACE FUNCTION ration.create_token_v1(
    p_name text, p_role text, p_scope jsonb, p_secret bytea, p_life bigint, p_actor text, p_reason text,
    p_now bigint DEFAULT NULL, OUT o_id bigint, OUT o_created_at bigint, OUT o_expires_at bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF p_life < 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a token lives for a microsecond at least';
    END IF;
    o_created_at := ration.clock_v1(p_now);
    o_expires_at := o_created_at + p_life;
    IF (SELECT count(*) FROM ration.token AS t
        WHERE t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > o_created_at)) >= 10000 THEN
        RAISE EXCEPTION USING ERRCODE = '54000', MESSAGE = 'there are 10000 tokens already: revoke those that nobody uses';
    END IF;
    INSERT INTO ration.token (name, role, scope, secret, created_at, created_by, expires_at)
    VALUES (p_name, p_role, p_scope, p_secret, o_created_at, p_actor, o_expires_at)
    RETURNING id INTO o_id;
    INSERT INTO ration.audit (at, actor, action, after, reason, request_id)
    VALUES (o_created_at, p_actor, 'token.created',
            json_build_object('id', o_id, 'name', p_name, 'role', p_role, 'scope', p_scope, 'expiresAtMicros', o_expires_at), p_reason, '');
    PERFORM pg_notify('ration_token', '');
END $$;

-- decide_new_v1: whether every operation id of a decide_v1 call is new, as nearly all are: then there is nothing to replay.
--
-- Arguments: p_operations by claim, NULL for none.
-- Answers: true when no other call decides one of them at this moment and nothing is stored under any.
-- Units: none. Clock: none.
-- Locks: tries the advisory lock of each id, and keeps those it gets to the end of the transaction. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.decide_new_v1(p_shard int, p_operations uuid[])
RETURNS boolean LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    v_free boolean;
BEGIN
    SELECT bool_and(pg_try_advisory_xact_lock(ration.advisory_key_v1(o.id))) INTO v_free
    FROM unnest(p_operations) AS o (id) WHERE o.id IS NOT NULL;
    -- By a statement of its own, which sees what the holders before have stored.
    RETURN v_free AND NOT EXISTS (SELECT FROM ration.operation AS f WHERE f.shard = p_shard AND f.key = ANY (p_operations));
END $$;

-- carry_v1: carries a balance over policy changes, version by version: earn under the old version up to the instant of
-- the change, convert by the rule that the change stated, clamp to minus and plus the new capacity, go on from there.
--
-- Arguments: policy number, the version the balance was settled under, the version wanted, balance, instant.
-- Answers: the balance under the wanted version and the instant it stands for, and whether it had to be clamped. keep and scale
--        convert it by converted_v1, and never move the instant back. Behind reset and restart a bucket is an idle one.
-- Units: balances in units of 1/d token of their version, instants in microseconds.
-- Clock: none; it reaches the last change, not now.
-- Locks: none. SQLSTATE: none.
-- Note:  called for each row of an older version, so it has no settings of its own: to set search_path and to set it back
--        would be two thirds of a call. Whoever runs it with more than his own rights has set it.
CREATE OR REPLACE FUNCTION ration.carry_v1(
    p_policy int, p_from int, p_to int, p_balance bigint, p_at bigint, OUT o_balance bigint, OUT o_at bigint, OUT o_clamped boolean)
LANGUAGE plpgsql STABLE STRICT
AS $$
DECLARE
    r           record;
    v_converted numeric;
BEGIN
    o_balance := p_balance;
    o_at := p_at;
    o_clamped := false;
    FOR r IN
        SELECT v.balances, w.n, w.d, w.capacity_units, v.d AS new_d, v.capacity_units AS new_capacity_units, v.installed_at,
               v.idle_balance, v.idle_at, v.balances IN ('reset', 'restart') AS anew
        FROM ration.policy_version AS v
        JOIN ration.policy_version AS w ON w.number = v.number AND w.version = v.version - 1
        WHERE v.number = p_policy AND v.version > p_from AND v.version <= p_to
          -- Versions of the same figures are crossed by earning on: only the last one's instant may be ahead of the clock.
          AND (v.version = p_to OR v.balances IN ('reset', 'restart') OR (v.n, v.d, v.capacity_units) <> (w.n, w.d, w.capacity_units))
        ORDER BY v.version
    LOOP
        IF r.anew THEN
            o_balance := r.idle_balance;
            o_at := r.idle_at;
            o_clamped := false;
            CONTINUE;
        END IF;
        o_balance := ration.settled_v1(o_balance, o_at, r.installed_at, r.n, r.capacity_units);
        o_at := greatest(o_at, r.installed_at);
        v_converted := ration.converted_v1(r.balances, o_balance, r.d, r.capacity_units, r.new_d, r.new_capacity_units);
        o_balance := ration.clamped_v1(v_converted, r.new_capacity_units);
        o_clamped := o_clamped OR o_balance <> v_converted;
    END LOOP;
END $$;

-- drain_v1: takes all that a key's bucket holds out of it, and leaves it as deep in debt as a bucket can be: calls that were
-- matched before may still meet it, and must not find there what is spent elsewhere from here on.
--
-- Arguments: the number of a token bucket's policy, the key, the instant.
-- Answers: what it held, and the instant up to which it has earned: one that is ahead of the clock earns nothing until then.
-- Units: balances in units of 1/d token of the policy's version in force, microseconds. Clock: none, the instant is given.
-- Locks: the bucket; an absent one is inserted first, as idle. SQLSTATE: 57014 statement_timeout.
CREATE OR REPLACE FUNCTION ration.drain_v1(p_policy int, p_key uuid, p_at bigint, OUT o_balance bigint, OUT o_at bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_policy constant ration.policy := (SELECT p FROM ration.policy AS p WHERE p.number = p_policy);
    v_table  constant text          := 'bucket_' || v_policy.durability;
    b record;  -- the row
    c record;  -- what it holds under the version in force
BEGIN
    -- Planned anew each time: once in a while, and over either table. Shard 0 is the only one of one server.
    EXECUTE format('INSERT INTO ration.%I (balance, at, key, shard, policy, version, took)
                    VALUES ($1, $2, $3, 0, $4, $5, 0) ON CONFLICT DO NOTHING', v_table)
        USING v_policy.idle_balance, v_policy.idle_at, p_key, p_policy, v_policy.version;
    EXECUTE format('SELECT FROM ration.%I AS b WHERE b.shard = 0 AND b.key = $1 FOR NO KEY UPDATE', v_table) USING p_key;
    EXECUTE format('SELECT b.version, b.balance, b.at FROM ration.%I AS b WHERE b.shard = 0 AND b.key = $1', v_table) INTO b USING p_key;
    c := ration.carry_v1(p_policy, b.version, v_policy.version, b.balance, b.at);
    o_balance := ration.settled_v1(c.o_balance, c.o_at, p_at, v_policy.n, v_policy.capacity_units);
    o_at := greatest(c.o_at, p_at);
    EXECUTE format('UPDATE ration.%I AS b SET balance = $1, at = $2, version = $3, took = 0 WHERE b.shard = 0 AND b.key = $4', v_table)
        USING -v_policy.capacity_units, o_at, v_policy.version, p_key;
    IF b.version < v_policy.version THEN
        PERFORM ration.append_carried_v1(ARRAY[p_policy], ARRAY[b.version], ARRAY[v_policy.version], ARRAY[c.o_clamped]);
    END IF;
END $$;

-- open_sweep_v1: begins the sweep of a change: from here on sweep_v1 settles what the policy has kept under older versions.
-- What was being swept for an earlier change of the policy goes on as this sweep; the audit says how far the earlier one came.
--
-- Arguments: the policy and its version that makes the change, both of which are in force in this transaction; the instant of
--        the change.
-- Answers: nothing. Windows and logs that are kept are counted on as they stand: there is nothing to sweep.
-- Units: microseconds. Clock: none, the instant is given.
-- Locks: the policy's sweep. The caller holds the row of ration.policy_set.
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

-- install_version_v1: puts the next version of a policy in force, the first one where there is none. The one home of what a
-- change does to an idle key, and of where what was kept counts no more.
--
-- Arguments: p_content is the stored form; n, d and capacity are its limit in stored units, and are refused where they
--        disagree with it: those of any other algorithm than the token bucket are 1, 1 and its limit. p_balances is the
--        rule by which what is kept is carried over: keep, scale, reset or restart; the last with p_start, full or empty.
--        p_deleted: the version is a tombstone, with which the policy and all that it keeps end. p_parent: the policy of which
--        this one is an override's limit. p_generation is that of the change, p_at its instant.
-- Answers: number, version, and the instant of its installation, never before that of the version before.
--        Idle keys of a first version, or after reset or restart, have spent nothing, or everything (start empty).
-- Units: n in units per microsecond, d in units per token, capacity in tokens, instants in microseconds.
-- Clock: none, the instant is given.
-- Locks: the caller holds the row of ration.policy_set, and bumps its generation.
-- SQLSTATE: RN005 the figures are not those of the content, or out of the bounds of its algorithm, or no such rule for balances,
--           or an id of an override's limit for another policy; 23514 another bound of the table.
CREATE OR REPLACE FUNCTION ration.install_version_v1(
    p_id text, p_content json, p_n bigint, p_d bigint, p_capacity bigint, p_balances text, p_start text, p_deleted boolean,
    p_parent int, p_generation bigint, p_at bigint, OUT o_number int, OUT o_version int, OUT o_installed_at bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_limit     constant json    := p_content -> 'limit';
    v_algorithm constant text    := coalesce(v_limit ->> 'algorithm', 'token_bucket');
    v_strict    constant boolean := coalesce((v_limit ->> 'strict')::boolean, false);
    v_span      constant numeric := 1000000 * CASE v_algorithm WHEN 'token_bucket' THEN 0
                                                                WHEN 'concurrency' THEN (v_limit ->> 'ttlSeconds')::numeric
                                                                ELSE (v_limit ->> 'windowSeconds')::numeric END;
    v_mode      constant text    := CASE WHEN p_deleted THEN 'deleted'
                                         ELSE ration.effective_mode_v1(p_id, coalesce(p_content ->> 'mode', 'enforce')) END;
    v_before    ration.policy_version;
    v_anew      boolean;  -- what was kept before counts no more
    v_units     bigint;
    v_idle      bigint;
    v_idle_at   bigint;
BEGIN
    -- In numeric, and true or refused: a missing figure must not pass for an equal one.
    IF (p_capacity::numeric * p_d < 2::numeric ^ 62 AND CASE
        WHEN v_algorithm = 'token_bucket' THEN
            p_n::numeric * 1000000 * (v_limit ->> 'refillSeconds')::numeric = p_d::numeric * (v_limit ->> 'refillTokens')::numeric
            AND (v_limit ->> 'refillSeconds')::numeric > 0
            AND p_capacity::numeric = (v_limit ->> 'capacity')::numeric
        ELSE
            p_n = 1 AND p_d = 1 AND p_capacity::numeric = (v_limit ->> 'limit')::numeric
            -- Whole microseconds, a millisecond to 366 days. Package policy has the same bounds, and says which is missed.
            AND v_span = trunc(v_span) AND v_span BETWEEN 1000 AND 31622400000000
            AND (v_algorithm <> 'sliding_window_counter' OR p_capacity::numeric * v_span < 2::numeric ^ 61)
            AND (v_algorithm <> 'sliding_window_log' OR p_capacity <= 1000)
            AND (v_algorithm <> 'concurrency' OR p_capacity <= 10000) END) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN005', MESSAGE = 'n, d and capacity are not those of the policy''s content, or out of bounds';
    END IF;
    IF (p_balances IN ('keep', 'scale', 'reset', 'restart') AND (p_balances = 'restart') = (p_start IS NOT NULL)
        AND coalesce(p_start, 'full') IN ('full', 'empty')
        AND (v_algorithm = 'token_bucket' OR p_balances <> 'scale')
        AND (v_algorithm <> 'concurrency' OR (p_balances <> 'reset' AND p_start IS DISTINCT FROM 'empty'))) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN005', MESSAGE = 'there is no such rule for the balances of this algorithm';
    END IF;
    IF (strpos(p_id, '!') > 0) <> (p_parent IS NOT NULL) THEN
        RAISE EXCEPTION USING ERRCODE = 'RN005', MESSAGE = 'an id with ! is that of an override''s limit, which changes with its policy';
    END IF;

    SELECT v.* INTO v_before FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version) WHERE p.id = p_id;
    o_number := v_before.number;
    -- An override's limit counts its versions with its policy, whose version it is shown as.
    o_version := coalesce(v_before.version + 1, (SELECT p.version FROM ration.policy AS p WHERE p.number = p_parent), 1);
    o_installed_at := greatest(p_at, v_before.installed_at);
    v_anew := v_before.number IS NULL OR p_balances IN ('reset', 'restart');
    v_units := p_capacity * p_d;
    v_idle := CASE p_start WHEN 'empty' THEN 0 ELSE v_units END;
    v_idle_at := o_installed_at;
    IF v_before.number IS NULL THEN
        INSERT INTO ration.policy (id, version, durability, algorithm, strict, span, mode, n, d, capacity, capacity_units,
                                   idle_balance, idle_at, since, parent, generation)
        VALUES (p_id, o_version, p_content ->> 'durability', v_algorithm, v_strict, v_span, v_mode, p_n, p_d, p_capacity, v_units,
                v_idle, v_idle_at, o_version, p_parent, p_generation)
        RETURNING number INTO o_number;
    END IF;
    INSERT INTO ration.policy_version (number, version, content, n, d, capacity, capacity_units, idle_balance, idle_at, balances,
                                       deleted, installed_at, generation)
    VALUES (o_number, o_version, p_content, p_n, p_d, p_capacity, v_units, v_idle, v_idle_at, p_balances, p_deleted, o_installed_at,
            p_generation);
    IF NOT v_anew THEN
        -- The idle bucket goes through the change as every bucket does. Windows and logs keep what they have counted, so
        -- their idle state keeps what is used of it.
        IF v_algorithm = 'token_bucket' THEN
            SELECT c.o_balance, c.o_at INTO v_idle, v_idle_at
            FROM ration.carry_v1(o_number, v_before.version, o_version, v_before.idle_balance, v_before.idle_at) AS c;
        ELSE
            v_idle := v_units - (v_before.capacity_units - v_before.idle_balance);
            v_idle_at := v_before.idle_at;
        END IF;
        UPDATE ration.policy_version SET idle_balance = v_idle, idle_at = v_idle_at WHERE number = o_number AND version = o_version;
    END IF;
    IF v_before.number IS NOT NULL THEN
        UPDATE ration.policy
        SET version = o_version, durability = p_content ->> 'durability', algorithm = v_algorithm, strict = v_strict, span = v_span,
            mode = v_mode, n = p_n, d = p_d, capacity = p_capacity, capacity_units = v_units, idle_balance = v_idle,
            idle_at = v_idle_at, since = CASE WHEN v_anew OR p_deleted THEN o_version ELSE since END, generation = p_generation
        WHERE number = o_number;
        IF v_anew OR (p_n, p_d, p_capacity) <> (v_before.n, v_before.d, v_before.capacity) THEN
            PERFORM ration.open_sweep_v1(o_number, o_version, o_installed_at);
        END IF;
    END IF;
END $$;

-- decide_lock_v1: locks the rows of a decide_v1 call. Absent ones are inserted first, as idle keys; then all are locked in
-- one ascending pass. Inserting before locking, each in the one order of places and keys, is what keeps calls that meet in
-- several rows from waiting for each other in a circle.
--
-- Arguments: cells are the distinct keys of the call; p_wanted says which to lock; p_places and p_writers are as
--        decide_read_v1 found them a moment ago. p_hold as in decide_v1.
-- Answers: o_cells: those whose rows are locked; o_rows: by entry of o_cells, where its row is now, for decide_write_v1. A cell
--        that is missing is held by another session ('skip'), absent ('skip'), was deleted meanwhile, or all are, when another
--        call waits for one of the keys ('alone'). o_same: all are locked, and hold what decide_read_v1 found there. Of slots
--        that is not known: they change without their parent's row.
-- Units: none. Clock: none.
-- Locks: 'alone': the transaction's advisory locks on the first 64 bits of the keys, if all are free; then the rows, by place
--        (state_place_v1) and key. Where that stands among other locks: docs/internals/architecture.md.
-- SQLSTATE: 57014 statement_timeout.
CREATE OR REPLACE FUNCTION ration.decide_lock_v1(
    p_shard int, p_hold text, p_wanted boolean[], p_places int[], p_policies int[], p_keys uuid[], p_writers xid[],
    OUT o_cells int[], OUT o_rows tid[], OUT o_same boolean)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET enable_memoize = off
AS $$
DECLARE
    v_cells    int[];    -- wanted, ascending by place and key
    v_places   int[];    -- of these
    v_absent   int[];    -- places of those without a row
    v_inserted int := 0;
    v_rows     int;
    r          record;
BEGIN
    SELECT array_agg(q.cell), array_agg(q.place), array_agg(q.place) FILTER (WHERE q.writer IS NULL)
    INTO v_cells, v_places, v_absent
    FROM (SELECT i AS cell, p_places[i] AS place, p_writers[i] AS writer FROM generate_series(1, cardinality(p_keys)) AS i
          WHERE p_wanted[i] ORDER BY 2, p_keys[i]) AS q;
    o_same := p_hold <> 'skip' AND NOT 7 = ANY (v_places);
    IF p_hold = 'skip' THEN
        SELECT array_agg(q.cell), array_agg(coalesce(l1.got, l2.got, l3.got, l4.got, l5.got, l6.got, l7.got)) INTO o_cells, o_rows
        FROM (SELECT u.cell, p_places[u.cell] AS place, p_keys[u.cell] AS key FROM unnest(v_cells) WITH ORDINALITY AS u (cell, n)
              ORDER BY u.n) AS q
        LEFT JOIN LATERAL (SELECT t.ctid AS got FROM ration.bucket_fast AS t
                           WHERE q.place = 1 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l1 ON true
        LEFT JOIN LATERAL (SELECT t.ctid AS got FROM ration.bucket_durable AS t
                           WHERE q.place = 2 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l2 ON true
        LEFT JOIN LATERAL (SELECT t.ctid AS got FROM ration.window_fast AS t
                           WHERE q.place = 3 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l3 ON true
        LEFT JOIN LATERAL (SELECT t.ctid AS got FROM ration.window_durable AS t
                           WHERE q.place = 4 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l4 ON true
        LEFT JOIN LATERAL (SELECT t.ctid AS got FROM ration.log_fast AS t
                           WHERE q.place = 5 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l5 ON true
        LEFT JOIN LATERAL (SELECT t.ctid AS got FROM ration.log_durable AS t
                           WHERE q.place = 6 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l6 ON true
        LEFT JOIN LATERAL (SELECT t.ctid AS got FROM ration.slot_parent AS t
                           WHERE q.place = 7 AND t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE SKIP LOCKED) AS l7 ON true
        WHERE coalesce(l1.got, l2.got, l3.got, l4.got, l5.got, l6.got, l7.got) IS NOT NULL;
        RETURN;
    END IF;
    IF p_hold = 'alone' AND NOT (SELECT bool_and(pg_try_advisory_xact_lock(ration.advisory_key_v1(p_keys[u.cell])))
                                 FROM unnest(v_cells) AS u (cell)) THEN
        o_same := false;
        RETURN;
    END IF;

    -- A policy whose state has another place since it was read is left out: its call decides nothing.
    IF 1 = ANY (v_absent) THEN
        INSERT INTO ration.bucket_fast (balance, at, key, shard, policy, version, took)
        SELECT p.idle_balance, p.idle_at, p_keys[u.cell], p_shard, p.number, p.version, 0
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 1 AND p_writers[u.cell] IS NULL
          AND ration.state_place_v1(p.algorithm, p.strict, p.durability) = 1 ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 2 = ANY (v_absent) THEN
        INSERT INTO ration.bucket_durable (balance, at, key, shard, policy, version, took)
        SELECT p.idle_balance, p.idle_at, p_keys[u.cell], p_shard, p.number, p.version, 0
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 2 AND p_writers[u.cell] IS NULL
          AND ration.state_place_v1(p.algorithm, p.strict, p.durability) = 2 ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 3 = ANY (v_absent) THEN
        INSERT INTO ration.window_fast (start, current, previous, key, shard, policy, version)
        SELECT ration.window_start_v1(p.idle_at, p.span), p.capacity - p.idle_balance, 0, p_keys[u.cell], p_shard, p.number, p.version
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 3 AND p_writers[u.cell] IS NULL
          AND ration.state_place_v1(p.algorithm, p.strict, p.durability) = 3 ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 4 = ANY (v_absent) THEN
        INSERT INTO ration.window_durable (start, current, previous, key, shard, policy, version)
        SELECT ration.window_start_v1(p.idle_at, p.span), p.capacity - p.idle_balance, 0, p_keys[u.cell], p_shard, p.number, p.version
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 4 AND p_writers[u.cell] IS NULL
          AND ration.state_place_v1(p.algorithm, p.strict, p.durability) = 4 ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 5 = ANY (v_absent) THEN
        INSERT INTO ration.log_fast (key, shard, policy, version, entries)
        SELECT p_keys[u.cell], p_shard, p.number, p.version, ration.idle_log_v1(p)
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 5 AND p_writers[u.cell] IS NULL
          AND ration.state_place_v1(p.algorithm, p.strict, p.durability) = 5 ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 6 = ANY (v_absent) THEN
        INSERT INTO ration.log_durable (key, shard, policy, version, entries)
        SELECT p_keys[u.cell], p_shard, p.number, p.version, ration.idle_log_v1(p)
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 6 AND p_writers[u.cell] IS NULL
          AND ration.state_place_v1(p.algorithm, p.strict, p.durability) = 6 ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;
    IF 7 = ANY (v_absent) THEN
        INSERT INTO ration.slot_parent (key, shard, policy)
        SELECT p_keys[u.cell], p_shard, p.number
        FROM unnest(v_cells) AS u (cell) JOIN ration.policy AS p ON p.number = p_policies[u.cell]
        WHERE p_places[u.cell] = 7 AND p_writers[u.cell] IS NULL
          AND ration.state_place_v1(p.algorithm, p.strict, p.durability) = 7 ORDER BY p_keys[u.cell] ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_inserted := v_inserted + v_rows;
    END IF;

    -- A subquery with a lock of its own cannot be flattened: the sorted cells drive it, so rows are locked ascending.
    IF 1 = ANY (v_places) THEN
        SELECT array_agg(q.cell) AS cells, array_agg(held.ctid) AS rows, bool_and((held.xmin = p_writers[q.cell]) IS NOT FALSE) AS same INTO r
        FROM (SELECT u.cell, p_keys[u.cell] AS key FROM unnest(v_cells) AS u (cell) WHERE p_places[u.cell] = 1 ORDER BY 2) AS q
        CROSS JOIN LATERAL (SELECT t.ctid, t.xmin FROM ration.bucket_fast AS t
                            WHERE t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS held;
        o_cells := o_cells || r.cells;
        o_rows := o_rows || r.rows;
        o_same := o_same AND r.same;
    END IF;
    IF 2 = ANY (v_places) THEN
        SELECT array_agg(q.cell) AS cells, array_agg(held.ctid) AS rows, bool_and((held.xmin = p_writers[q.cell]) IS NOT FALSE) AS same INTO r
        FROM (SELECT u.cell, p_keys[u.cell] AS key FROM unnest(v_cells) AS u (cell) WHERE p_places[u.cell] = 2 ORDER BY 2) AS q
        CROSS JOIN LATERAL (SELECT t.ctid, t.xmin FROM ration.bucket_durable AS t
                            WHERE t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS held;
        o_cells := o_cells || r.cells;
        o_rows := o_rows || r.rows;
        o_same := o_same AND r.same;
    END IF;
    IF 3 = ANY (v_places) THEN
        SELECT array_agg(q.cell) AS cells, array_agg(held.ctid) AS rows, bool_and((held.xmin = p_writers[q.cell]) IS NOT FALSE) AS same INTO r
        FROM (SELECT u.cell, p_keys[u.cell] AS key FROM unnest(v_cells) AS u (cell) WHERE p_places[u.cell] = 3 ORDER BY 2) AS q
        CROSS JOIN LATERAL (SELECT t.ctid, t.xmin FROM ration.window_fast AS t
                            WHERE t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS held;
        o_cells := o_cells || r.cells;
        o_rows := o_rows || r.rows;
        o_same := o_same AND r.same;
    END IF;
    IF 4 = ANY (v_places) THEN
        SELECT array_agg(q.cell) AS cells, array_agg(held.ctid) AS rows, bool_and((held.xmin = p_writers[q.cell]) IS NOT FALSE) AS same INTO r
        FROM (SELECT u.cell, p_keys[u.cell] AS key FROM unnest(v_cells) AS u (cell) WHERE p_places[u.cell] = 4 ORDER BY 2) AS q
        CROSS JOIN LATERAL (SELECT t.ctid, t.xmin FROM ration.window_durable AS t
                            WHERE t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS held;
        o_cells := o_cells || r.cells;
        o_rows := o_rows || r.rows;
        o_same := o_same AND r.same;
    END IF;
    IF 5 = ANY (v_places) THEN
        SELECT array_agg(q.cell) AS cells, array_agg(held.ctid) AS rows, bool_and((held.xmin = p_writers[q.cell]) IS NOT FALSE) AS same INTO r
        FROM (SELECT u.cell, p_keys[u.cell] AS key FROM unnest(v_cells) AS u (cell) WHERE p_places[u.cell] = 5 ORDER BY 2) AS q
        CROSS JOIN LATERAL (SELECT t.ctid, t.xmin FROM ration.log_fast AS t
                            WHERE t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS held;
        o_cells := o_cells || r.cells;
        o_rows := o_rows || r.rows;
        o_same := o_same AND r.same;
    END IF;
    IF 6 = ANY (v_places) THEN
        SELECT array_agg(q.cell) AS cells, array_agg(held.ctid) AS rows, bool_and((held.xmin = p_writers[q.cell]) IS NOT FALSE) AS same INTO r
        FROM (SELECT u.cell, p_keys[u.cell] AS key FROM unnest(v_cells) AS u (cell) WHERE p_places[u.cell] = 6 ORDER BY 2) AS q
        CROSS JOIN LATERAL (SELECT t.ctid, t.xmin FROM ration.log_durable AS t
                            WHERE t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS held;
        o_cells := o_cells || r.cells;
        o_rows := o_rows || r.rows;
        o_same := o_same AND r.same;
    END IF;
    IF 7 = ANY (v_places) THEN
        SELECT array_agg(q.cell) AS cells, array_agg(held.ctid) AS rows, bool_and((held.xmin = p_writers[q.cell]) IS NOT FALSE) AS same INTO r
        FROM (SELECT u.cell, p_keys[u.cell] AS key FROM unnest(v_cells) AS u (cell) WHERE p_places[u.cell] = 7 ORDER BY 2) AS q
        CROSS JOIN LATERAL (SELECT t.ctid, t.xmin FROM ration.slot_parent AS t
                            WHERE t.shard = p_shard AND t.key = q.key FOR NO KEY UPDATE) AS held;
        o_cells := o_cells || r.cells;
        o_rows := o_rows || r.rows;
        o_same := o_same AND r.same;
    END IF;
    -- Whose rows were inserted by others meanwhile were not seen before.
    o_same := (o_same AND cardinality(o_cells) = cardinality(v_cells) AND v_inserted = coalesce(cardinality(v_absent), 0)) IS TRUE;
END $$;

-- end_overrides_v1: takes overrides away. What the bucket of another limit holds goes back to the key's own bucket, by keep; the
-- policy that held that limit ends.
--
-- Arguments: the overrides; whether their policies go on, so that there are buckets to give back to; the generation and the
--        instant of the change.
-- Units: microseconds. Clock: none, the instant is given.
-- Locks: the buckets of the overrides and the keys' own, all of them before the first is changed, in the order of decide_lock_v1:
--        decisions wait for these rows too. The caller holds the row of ration.policy_set, bumps its generation, and tells the
--        policies' instances.
-- SQLSTATE: 57014 statement_timeout.
CREATE OR REPLACE FUNCTION ration.end_overrides_v1(p_overrides ration.override[], p_go_on boolean, p_generation bigint, p_at bigint)
RETURNS void LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_override ration.override;
    v_limited  ration.policy;
    v_version  ration.policy_version;
    v_policy   ration.policy;
    v_balance  bigint;
    b          record;  -- what the override's bucket held
BEGIN
    DELETE FROM ration.override AS f USING unnest(p_overrides) AS o WHERE f.number = o.number;
    IF p_go_on THEN
        PERFORM ration.decide_lock_v1(0, 'wait', array_agg(true), array_agg(r.place), array_agg(r.policy), array_agg(r.key),
                                      array_agg(NULL::xid))
        FROM (SELECT ration.state_place_v1(p.algorithm, p.strict, p.durability) AS place, p.number AS policy,
                     ration.bucket_key(p.id, o.attributes) AS key
              FROM unnest(p_overrides) AS o
              JOIN ration.policy AS l ON l.number = o.limited AND l.algorithm = 'token_bucket'
              JOIN ration.policy AS p ON p.number IN (o.policy, o.limited)) AS r
        HAVING count(*) > 0;
    END IF;
    FOREACH v_override IN ARRAY coalesce(p_overrides, '{}') LOOP
        CONTINUE WHEN v_override.limited IS NULL;
        SELECT p.* INTO v_limited FROM ration.policy AS p WHERE p.number = v_override.limited;
        SELECT p.* INTO v_policy FROM ration.policy AS p WHERE p.number = v_override.policy;
        IF p_go_on AND v_limited.algorithm = 'token_bucket' THEN
            b := ration.drain_v1(v_limited.number, ration.bucket_key(v_limited.id, v_override.attributes), p_at);
            v_balance := ration.clamped_v1(ration.converted_v1('keep', b.o_balance, v_limited.d, v_limited.capacity_units,
                                                               v_policy.d, v_policy.capacity_units), v_policy.capacity_units);
            PERFORM ration.drain_v1(v_policy.number, v_override.key, p_at);
            EXECUTE format('UPDATE ration.%I AS b SET balance = $1, at = greatest(b.at, $2) WHERE b.shard = 0 AND b.key = $3',
                           'bucket_' || v_policy.durability)
                USING v_balance, b.o_at, v_override.key;
        END IF;
        SELECT v.* INTO v_version FROM ration.policy_version AS v WHERE v.number = v_limited.number AND v.version = v_limited.version;
        PERFORM ration.install_version_v1(v_limited.id, v_version.content, v_version.n, v_version.d, v_version.capacity, 'keep', NULL,
                                          true, v_policy.number, p_generation, p_at);
    END LOOP;
END $$;

-- override_content_v1: what the policy that holds an override's limit says: the content of the override's policy, with the
-- figures of another limit of the same kind. What the policy does while there is no store is not among it: its bounds are those
-- of the policy's own limit.
--
-- Arguments: the policy's content; a limit, or the content of one, of which only the figures count.
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.override_content_v1(p_content json, p_limit json)
RETURNS json LANGUAGE sql IMMUTABLE
BEGIN ATOMIC
    SELECT jsonb_set(p_content::jsonb - 'onStoreDown', '{limit}', (p_content -> 'limit')::jsonb
                     || (SELECT jsonb_object_agg(f.name, f.value) FROM jsonb_each(p_limit::jsonb) AS f (name, value)
                         WHERE f.name IN ('capacity', 'refillTokens', 'refillSeconds', 'limit')))::json;
END;

-- override_json_v1: an override as the audit shows it.
--
-- Units: instants in UTC, to the microsecond. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.override_json_v1(p_override ration.override)
RETURNS json LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT json_strip_nulls(json_build_object(
        'attributes', p_override.attributes, 'action', p_override.action,
        'limit', (SELECT v.content -> 'limit' FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version)
                  WHERE p.number = p_override.limited),
        'expiresAt', to_char(ration.instant_v1(p_override.expires_at, 0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')));
END;

-- follow_overrides_v1: the overrides of a policy after a change of it: each that has another limit has the policy's new content,
-- with that limit, in a version of the same number. What they keep is kept; a reset of the policy is one of them too. With a
-- deleted policy they end.
--
-- Arguments: the policy, whose new version is in force in this transaction; who asks, why, and the id of his request; the
--        generation and the instant of the change.
-- Units: microseconds. Clock: none, the instant is given.
-- Locks: the caller holds the row of ration.policy_set, and bumps its generation. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.follow_overrides_v1(
    p_policy int, p_actor text, p_role text, p_reason text, p_request_id text, p_generation bigint, p_at bigint)
RETURNS void LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_version   ration.policy_version;
    v_overrides ration.override[];
    v_shown     json[];  -- these, for the audit
BEGIN
    SELECT v.* INTO v_version FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version) WHERE p.number = p_policy;
    IF v_version.deleted THEN
        SELECT array_agg(o ORDER BY o.number), array_agg(ration.override_json_v1(o) ORDER BY o.number) INTO v_overrides, v_shown
        FROM ration.override AS o WHERE o.policy = p_policy;
        PERFORM ration.end_overrides_v1(v_overrides, false, p_generation, p_at);
        INSERT INTO ration.audit (at, actor, role, action, policy, before, reason, request_id)
        SELECT p_at, p_actor, p_role, 'override.removed', p.id, s.shown, p_reason, p_request_id
        FROM unnest(v_shown) AS s (shown) JOIN ration.policy AS p ON p.number = p_policy;
        RETURN;
    END IF;
    PERFORM ration.install_version_v1(p.id, ration.override_content_v1(v_version.content, v.content -> 'limit'), v.n, v.d, v.capacity,
                                      CASE v_version.balances WHEN 'reset' THEN 'reset' ELSE 'keep' END, NULL, false, p_policy,
                                      p_generation, p_at)
    FROM ration.override AS o
    JOIN ration.policy AS p ON p.number = o.limited
    JOIN ration.policy_version AS v ON v.number = p.number AND v.version = p.version
    WHERE o.policy = p_policy;
END $$;

-- delete_policy_v1: ends a policy with a tombstone, its next version, in one transaction with its audit row and the bump of the
-- generation. Its versions stay; what its keys have used counts no more; slots live until they are released or expire.
--
-- Arguments: p_expected is the version in force; who asks, why, and the id of his request.
-- Answers: o_outcome deleted | conflict (o_version is the one in force, 0 when there is none; nothing was changed); the
--        tombstone's version, and the generation.
-- Units: instants in microseconds.
-- Clock: clock_timestamp(), read under the lock; the tombstone is never installed before the version that it ends.
-- Locks: the row of ration.policy_set, first: policy changes are one after the other. Decisions wait for none of this.
-- SQLSTATE: RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.delete_policy_v1(
    p_id text, p_expected int, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL,
    OUT o_outcome text, OUT o_version int, OUT o_generation bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_before ration.policy_version;
    v_at     bigint;
BEGIN
    SELECT s.generation INTO o_generation FROM ration.policy_set AS s FOR UPDATE;
    SELECT v.* INTO v_before FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version)
    WHERE p.id = p_id AND NOT v.deleted;
    o_version := coalesce(v_before.version, 0);
    IF o_version = 0 OR o_version IS DISTINCT FROM p_expected THEN
        o_outcome := 'conflict';
        RETURN;
    END IF;
    o_outcome := 'deleted';
    o_generation := o_generation + 1;
    SELECT i.o_version, i.o_installed_at INTO o_version, v_at
    FROM ration.install_version_v1(p_id, v_before.content, v_before.n, v_before.d, v_before.capacity, 'keep', NULL, true, NULL,
                                   o_generation, ration.clock_v1(p_now)) AS i;
    PERFORM ration.follow_overrides_v1(v_before.number, p_actor, p_role, p_reason, p_request_id, o_generation, v_at);
    UPDATE ration.policy_set SET generation = o_generation;
    INSERT INTO ration.audit (at, actor, role, action, policy, version_before, version_after, before, reason, request_id)
    VALUES (v_at, p_actor, p_role, 'policy.deleted', p_id, v_before.version, o_version, v_before.content, p_reason, p_request_id);
    PERFORM pg_notify('ration_policy', o_generation::text);
END $$;

-- state_table_v1: the table of a place in the lock order (state_place_v1), in which a key has one row.
--
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  a single expression without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.state_table_v1(p_place int)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (ARRAY['bucket_fast', 'bucket_durable', 'window_fast', 'window_durable', 'log_fast', 'log_durable', 'slot_parent'])[p_place];

-- dry_run_v1: what a change would do to the balances that a policy's keys have now. It reads without locks and changes nothing.
--
-- Arguments: the shard; the policy's id; the stored form of the version that would be installed, with its d and capacity, and
--        what it says of balances, as in install_version_v1; for how long to count: it stops behind that.
-- Answers: how many balances are stored and count; of these, how many the change would cut to its capacity, and how many could
--        pay the default cost of a call now and could not behind the change; o_at_least: there may be more of each.
-- Units: d in units per token, capacity in tokens, microseconds.
-- Clock: clock_timestamp() once, or p_now on a test clock; how long it counts is by clock_timestamp() always.
-- Locks: none.
-- SQLSTATE: RN001 RN002 from ready_v1, RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.dry_run_v1(
    p_shard int, p_id text, p_content json, p_d bigint, p_capacity bigint, p_balances text, p_start text, p_long bigint,
    p_now bigint DEFAULT NULL, OUT o_live bigint, OUT o_clamped bigint, OUT o_denied bigint, OUT o_at_least boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Whether analysed or not: the rows of a stretch, and what each of them needs.
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $$
DECLARE
    c_rows  constant int         := 10000;  -- examined at once: a few ten milliseconds' worth
    v_end   constant timestamptz := clock_timestamp() + p_long * interval '1 microsecond';
    v_now   constant bigint      := ration.clock_v1(p_now);
    v_cost  constant bigint      := coalesce((p_content -> 'costs' ->> 'default')::bigint, 1);
    v_number         int;
    v_place          int;
    v_table          text;
    v_before         bigint;  -- the default cost of the version in force
    v_room           text;    -- what is left of a row now, in parts of 1/d token
    v_after          text;    -- and what would be left behind the change
    v_clamped        text;    -- whether the change cuts it
    v_counted        record;
    v_last           uuid;
    s                record;
BEGIN
    o_live := 0;
    o_clamped := 0;
    o_denied := 0;
    o_at_least := false;
    SELECT p.number, ration.state_place_v1(p.algorithm, p.strict, p.durability), coalesce((v.content -> 'costs' ->> 'default')::bigint, 1)
    INTO v_number, v_place, v_before
    FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version) WHERE p.id = p_id AND p.mode <> 'deleted';
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_table := ration.state_table_v1(v_place);
    PERFORM ration.ready_v1(v_place IN (1, 3, 5), NULL);
    v_room := CASE
        WHEN v_place <= 2 THEN 'CASE WHEN t.version = p.version THEN ration.settled_v1(t.balance, t.at, $4, p.n, p.capacity_units)
                                     ELSE ration.balance_at_v1(p.number, t.version, t.balance, t.at, $4) END'
        WHEN v_place <= 4 THEN '(SELECT ration.window_room_v1(p.algorithm = ''sliding_window_counter'', w.current, w.previous,
                                                              greatest(0, $4 - w.start), p.span, p.capacity)
                                 FROM ration.window_at_v1(t.start, t.current, t.previous, p.span, $4) AS w)'
        WHEN v_place <= 6 THEN 'p.capacity - (SELECT l.o_used FROM ration.log_live_v1(t.entries, $4 - p.span) AS l)'
        ELSE 'p.capacity - (SELECT coalesce(sum(f.cost), 0) FROM ration.slot AS f
                            WHERE f.shard = t.shard AND f.key = t.key AND f.expires_at > $4)' END;
    v_after := CASE
        WHEN p_start = 'empty' THEN '0'
        WHEN v_place = 7 AND p_content -> 'limit' ->> 'algorithm' = 'concurrency' THEN 'held.room - p.capacity + $7'  -- slots live on
        WHEN p_balances IN ('reset', 'restart') THEN '$6::bigint * $7'
        WHEN v_place <= 2 THEN 'ration.converted_v1($5, held.room, p.d, p.capacity_units, $6, $6 * $7)'
        ELSE 'held.room - p.capacity + $7' END;
    v_clamped := CASE WHEN v_place <= 2 THEN 'next.room <> ration.clamped_v1(next.room, $6 * $7)' ELSE 'false' END;

    LOOP
        s := ration.stretch_v1(v_table, 'key', p_shard, v_last, c_rows);
        EXECUTE format('
            SELECT count(*) AS live, count(*) FILTER (WHERE %s) AS clamped,
                   count(*) FILTER (WHERE held.room >= $8::numeric * p.d AND $8 <= p.capacity
                                      AND NOT (next.room >= $9::numeric * $6 AND $9 <= $7)) AS denied
            FROM ration.policy AS p
            JOIN ration.%I AS t ON t.policy = p.number
            CROSS JOIN LATERAL (SELECT %s AS room OFFSET 0) AS held
            CROSS JOIN LATERAL (SELECT %s AS room OFFSET 0) AS next
            WHERE p.number = $10 AND t.shard = $1 AND t.key > $2 AND t.key <= $3 AND %s',
            v_clamped, v_table, v_room, v_after, CASE WHEN v_place < 7 THEN 't.version >= p.since' ELSE 'true' END)
            INTO v_counted
            USING p_shard, s.o_after, s.o_until, v_now, p_balances, p_d, p_capacity, v_before, v_cost, v_number;
        o_live := o_live + v_counted.live;
        o_clamped := o_clamped + v_counted.clamped;
        o_denied := o_denied + v_counted.denied;
        v_last := s.o_last;
        o_at_least := v_last IS NOT NULL AND clock_timestamp() >= v_end;
        EXIT WHEN v_last IS NULL OR o_at_least;
    END LOOP;
END $$;

-- expire_v1: ends the overrides and kill switches whose time is over, with an audit row each. Every instance calls it once a
-- second.
--
-- Answers: how many ended: all kill switches that are due, but 200 overrides at most, those first that are due for longest. Each
--        is a row of the audit, and the rows that one transaction adds to the chain take the longer the more they are: nobody
--        who changes a policy should wait for that. It is called again until it answers 0.
-- Units: none. Clock: clock_timestamp(), or p_now on a test clock.
-- Locks: none where nothing is due; else the row of ration.policy_set, first, then the buckets of the overrides.
-- SQLSTATE: RN003 from clock_v1; 57014 statement_timeout.
CREATE OR REPLACE FUNCTION ration.expire_v1(p_now bigint DEFAULT NULL)
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c_overrides_max constant int := 200;
    v_now           constant bigint := ration.clock_v1(p_now);
    v_generation    bigint;
    v_overrides     ration.override[];
    v_shown         json[];  -- these, for the audit
    v_prefixes      text[];
BEGIN
    IF NOT EXISTS (SELECT FROM ration.override AS o WHERE o.expires_at <= v_now)
       AND NOT EXISTS (SELECT FROM ration.kill_switch AS k WHERE k.expires_at <= v_now) THEN
        RETURN 0;
    END IF;
    SELECT s.generation + 1 INTO v_generation FROM ration.policy_set AS s FOR UPDATE;
    -- A new statement sees what another instance has ended meanwhile.
    SELECT array_agg(o ORDER BY o.number), array_agg(ration.override_json_v1(o) ORDER BY o.number) INTO v_overrides, v_shown
    FROM ration.override AS o
    WHERE o.number IN (SELECT due.number FROM ration.override AS due WHERE due.expires_at <= v_now
                       ORDER BY due.expires_at, due.number LIMIT c_overrides_max);
    WITH over AS (DELETE FROM ration.kill_switch AS k WHERE k.expires_at <= v_now RETURNING k.prefix)
    SELECT array_agg(o.prefix) INTO v_prefixes FROM over AS o;
    IF v_overrides IS NULL AND v_prefixes IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM ration.end_overrides_v1(v_overrides, true, v_generation, v_now);
    UPDATE ration.policy AS p SET generation = v_generation WHERE p.number IN (SELECT o.policy FROM unnest(v_overrides) AS o);
    PERFORM ration.apply_kill_switch_v1(k.prefix, v_generation) FROM unnest(v_prefixes) AS k (prefix);
    UPDATE ration.policy_set SET generation = v_generation;
    INSERT INTO ration.audit (at, actor, action, policy, before, reason, request_id)
    SELECT v_now, 'ration', 'override.expired', p.id, v_shown[o.place], '', ''
    FROM unnest(v_overrides) WITH ORDINALITY
             AS o (number, policy, key, attributes, action, limited, expires_at, actor, reason, created_at, generation, place)
    JOIN ration.policy AS p ON p.number = o.policy
    ORDER BY o.place;
    INSERT INTO ration.audit (at, actor, action, before, reason, request_id)
    SELECT v_now, 'ration', 'kill-switch.expired', json_build_object('prefix', k.prefix), '', ''
    FROM unnest(v_prefixes) AS k (prefix) ORDER BY k.prefix;
    PERFORM pg_notify('ration_policy', v_generation::text);
    RETURN coalesce(cardinality(v_overrides), 0) + coalesce(cardinality(v_prefixes), 0);
END $$;

-- hindering_overrides_v1: the overrides that stand in the way of a restart of their policy: those with another limit, which would
-- be one of other state; and all, where other keys come to be.
--
-- Arguments: a policy; its new content.
-- Answers: the attributes of the first ten, NULL where there is none.
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.hindering_overrides_v1(p_policy int, p_content json)
RETURNS text[] LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT array_agg(h.attributes ORDER BY h.number)
    FROM (SELECT o.number, o.attributes::text AS attributes
          FROM ration.override AS o
          JOIN ration.policy AS p ON p.number = o.policy
          JOIN ration.policy_version AS v ON v.number = p.number AND v.version = p.version
          WHERE o.policy = p_policy
            AND (o.action = 'limit' OR (v.content -> 'per')::jsonb <> (p_content -> 'per')::jsonb
                 OR (v.content -> 'ipPrefix')::jsonb IS DISTINCT FROM (p_content -> 'ipPrefix')::jsonb)
          ORDER BY o.number LIMIT 10) AS h;
END;

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

-- decide_read_v1: what the keys of a decide_v1 call hold at an instant: each under the policy version in force, carried over
-- every change, with what has been earned or has expired by then. An absent row is an idle key; so is a row of windows or a
-- log that was written before what the policy keeps began anew.
--
-- Arguments: cells are the distinct keys of the call with their policies; p_needed says which of them to read.
-- Answers: one entry a cell, NULL where it is not needed or its policy is not of this generation.
--        o_places: where its state is kept (state_place_v1); o_rows: where its row is, but for slots; o_writers: the transaction
--        that wrote the row; both NULL where there is none; o_room: what may be charged, in parts of 1/d token; o_base: a
--        bucket's balance in the same parts, else the tokens that count; o_at: the instant of the balance, the start of the
--        window, the newest entry or expiry; o_previous: what the window before counts; o_marks: the instant under which a
--        window or log keeps a charge of now, the expiry of a slot of now; o_logs: the live entries of logs.
-- Units: tokens and parts of 1/d token, microseconds. Clock: none, the instant is given.
-- Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.decide_read_v1(
    p_shard int, p_generation bigint, p_policies int[], p_keys uuid[], p_needed boolean[], p_now bigint,
    OUT o_places int[], OUT o_rows tid[], OUT o_writers xid[], OUT o_enforced boolean[], OUT o_versions int[], OUT o_capacities bigint[],
    OUT o_n bigint[], OUT o_d bigint[], OUT o_spans bigint[], OUT o_sliding boolean[], OUT o_room bigint[], OUT o_base bigint[],
    OUT o_at bigint[], OUT o_previous bigint[], OUT o_marks bigint[], OUT o_logs ration.log_entries[])
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET enable_memoize = off
AS $$
DECLARE
    r record;
BEGIN
    -- Token buckets are read with the policies; every other kind of state by a statement of its own, if it occurs: to begin
    -- one costs as much as to read a few keys.
    SELECT array_agg(p.place), array_agg(p.enforced), array_agg(p.version), array_agg(p.capacity), array_agg(p.n), array_agg(p.d),
           array_agg(p.span), array_agg(p.sliding), array_agg(s.row), array_agg(s.writer), array_agg(b.settled), array_agg(b.at)
    INTO o_places, o_enforced, o_versions, o_capacities, o_n, o_d, o_spans, o_sliding, o_rows, o_writers, o_room, o_at
    FROM (SELECT i AS cell FROM generate_series(1, cardinality(p_keys)) AS i ORDER BY 1) AS c
    LEFT JOIN LATERAL (
        SELECT f.number, f.version, f.capacity, f.capacity_units, f.n, f.d, f.span, f.idle_balance, f.idle_at,
               f.mode = 'enforce' AS enforced, f.algorithm = 'sliding_window_counter' AND NOT f.strict AS sliding,
               ration.state_place_v1(f.algorithm, f.strict, f.durability) AS place
        FROM ration.policy AS f
        WHERE f.number = p_policies[c.cell] AND f.generation <= p_generation AND p_needed[c.cell] OFFSET 0) AS p ON true
    -- Each branch is run for the cells of its place alone.
    LEFT JOIN LATERAL (
        SELECT f.ctid AS row, f.xmin AS writer, f.version, f.balance, f.at FROM ration.bucket_fast AS f
        WHERE p.place = 1 AND f.shard = p_shard AND f.key = p_keys[c.cell]
        UNION ALL SELECT f.ctid, f.xmin, f.version, f.balance, f.at FROM ration.bucket_durable AS f
        WHERE p.place = 2 AND f.shard = p_shard AND f.key = p_keys[c.cell] OFFSET 0) AS s ON true
    LEFT JOIN LATERAL (
        SELECT v.at, ration.settled_v1(v.balance, v.at, p_now, p.n, p.capacity_units) AS settled
        FROM (SELECT coalesce(k.carried[1], s.balance, p.idle_balance) AS balance, coalesce(k.carried[2], s.at, p.idle_at) AS at
              -- Not called for rows of the version in force.
              FROM (SELECT CASE WHEN s.version < p.version THEN (
                               SELECT ARRAY[y.o_balance, y.o_at]
                               FROM ration.carry_v1(p.number, s.version, p.version, s.balance, s.at) AS y) END AS carried) AS k
              WHERE p.place <= 2 OFFSET 0) AS v) AS b ON true;
    o_base := o_room;
    o_previous := array_fill(NULL::bigint, ARRAY[cardinality(p_keys)]);
    o_marks := o_previous;
    IF o_places && ARRAY[3, 4] THEN
        FOR r IN
            SELECT c.cell, s.row, s.writer, w.start, w.current, w.previous,
                   ration.window_room_v1(o_sliding[c.cell], w.current, w.previous, greatest(0, p_now - w.start), p.span, p.capacity) AS room
            FROM (SELECT i AS cell, o_places[i] AS place FROM generate_series(1, cardinality(p_keys)) AS i
                  WHERE o_places[i] BETWEEN 3 AND 4) AS c
            CROSS JOIN LATERAL (SELECT f.* FROM ration.policy AS f WHERE f.number = p_policies[c.cell] OFFSET 0) AS p
            LEFT JOIN LATERAL (
                SELECT f.ctid AS row, f.xmin AS writer, f.version, f.start, f.current, f.previous FROM ration.window_fast AS f
                WHERE c.place = 3 AND f.shard = p_shard AND f.key = p_keys[c.cell]
                UNION ALL SELECT f.ctid, f.xmin, f.version, f.start, f.current, f.previous FROM ration.window_durable AS f
                WHERE c.place = 4 AND f.shard = p_shard AND f.key = p_keys[c.cell] OFFSET 0) AS s ON true
            LEFT JOIN LATERAL (SELECT s.start, s.current, s.previous WHERE s.version >= p.since) AS h ON true
            CROSS JOIN LATERAL ration.window_at_v1(coalesce(h.start, ration.window_start_v1(p.idle_at, p.span)),
                                                   coalesce(h.current, p.capacity - p.idle_balance), coalesce(h.previous, 0),
                                                   p.span, p_now) AS w
        LOOP
            o_rows[r.cell] := r.row;
            o_writers[r.cell] := r.writer;
            o_room[r.cell] := r.room;
            o_base[r.cell] := r.current;
            o_at[r.cell] := r.start;
            o_previous[r.cell] := r.previous;
            o_marks[r.cell] := r.start;
        END LOOP;
    END IF;
    IF o_places && ARRAY[5, 6] THEN
        o_logs := array_fill(NULL::ration.log_entries, ARRAY[cardinality(p_keys)]);
        FOR r IN
            SELECT c.cell, s.row, s.writer, p.capacity - l.o_used AS room, l.o_used AS used, newest.at,
                   -- A charge stands at its instant, a segment's at the segment's end; but not before the newest.
                   greatest(ration.log_mark_v1(p_now, ration.segment_v1(p.policy)), newest.at) AS mark,
                   ROW (l.o_live)::ration.log_entries AS log
            FROM (SELECT i AS cell, o_places[i] AS place FROM generate_series(1, cardinality(p_keys)) AS i
                  WHERE o_places[i] BETWEEN 5 AND 6) AS c
            CROSS JOIN LATERAL (SELECT f AS policy, f.capacity, f.span, f.since FROM ration.policy AS f
                                WHERE f.number = p_policies[c.cell] OFFSET 0) AS p
            LEFT JOIN LATERAL (
                SELECT f.ctid AS row, f.xmin AS writer, f.version, f.entries FROM ration.log_fast AS f
                WHERE c.place = 5 AND f.shard = p_shard AND f.key = p_keys[c.cell]
                UNION ALL SELECT f.ctid, f.xmin, f.version, f.entries FROM ration.log_durable AS f
                WHERE c.place = 6 AND f.shard = p_shard AND f.key = p_keys[c.cell] OFFSET 0) AS s ON true
            CROSS JOIN LATERAL ration.log_live_v1(CASE WHEN s.version >= p.since THEN s.entries ELSE ration.idle_log_v1(p.policy) END,
                                                  p_now - p.span) AS l
            CROSS JOIN LATERAL (SELECT l.o_live[cardinality(l.o_live) - 1] AS at) AS newest
        LOOP
            o_rows[r.cell] := r.row;
            o_writers[r.cell] := r.writer;
            o_room[r.cell] := r.room;
            o_base[r.cell] := r.used;
            o_at[r.cell] := r.at;
            o_marks[r.cell] := r.mark;
            o_logs[r.cell] := r.log;
        END LOOP;
    END IF;
    IF 7 = ANY (o_places) THEN
        FOR r IN
            SELECT c.cell, o.xmin AS writer, u.used, u.last
            FROM (SELECT i AS cell FROM generate_series(1, cardinality(p_keys)) AS i WHERE o_places[i] = 7) AS c
            LEFT JOIN LATERAL (SELECT f.xmin FROM ration.slot_parent AS f WHERE f.shard = p_shard AND f.key = p_keys[c.cell] OFFSET 0) AS o
                ON true
            CROSS JOIN LATERAL (SELECT coalesce(sum(f.cost), 0) AS used, max(f.expires_at) AS last FROM ration.slot AS f
                                WHERE f.shard = p_shard AND f.key = p_keys[c.cell] AND f.expires_at > p_now) AS u
        LOOP
            o_writers[r.cell] := r.writer;
            o_room[r.cell] := o_capacities[r.cell] - r.used;
            o_base[r.cell] := r.used;
            o_at[r.cell] := r.last;
            o_marks[r.cell] := p_now + o_spans[r.cell];
        END LOOP;
    END IF;
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

-- override_key_v1: the key that an override is for.
--
-- Arguments: the content of a policy in force and its id; attributes by name.
-- Answers: the key, NULL unless the attributes are exactly those of the policy's `per`; and o_members, those of `per`.
-- Units: none. Clock: none. Locks: none. SQLSTATE: 22P02 the ip is no address.
CREATE OR REPLACE FUNCTION ration.override_key_v1(
    p_content json, p_id text, p_attributes jsonb, OUT o_members text[], OUT o_key uuid)
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    o_members := ARRAY(SELECT json_array_elements_text(p_content -> 'per'));
    IF o_members @> ARRAY(SELECT jsonb_object_keys(p_attributes)) THEN
        o_key := ration.bucket_key(p_id, p_attributes);
    END IF;
END $$;

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

-- put_kill_switch_v1: makes the enforced policies whose ids begin with a prefix shadows for a while, in one transaction with its
-- audit row and the bump of the generation. Thrown again it lasts anew from now on.
--
-- Arguments: the prefix, '' for all; for how long; who asks, why, and the id of his request.
-- Answers: until when; how many policies it lies over that would be enforced; the generation.
-- Units: microseconds. Clock: clock_timestamp(), read under the lock.
-- Locks: the row of ration.policy_set, first.
-- SQLSTATE: RN003 from clock_v1; 23514 no prefix of an id.
CREATE OR REPLACE FUNCTION ration.put_kill_switch_v1(
    p_prefix text, p_lasts bigint, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL,
    OUT o_expires_at bigint, OUT o_policies int, OUT o_generation bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_now bigint;
BEGIN
    SELECT s.generation + 1 INTO o_generation FROM ration.policy_set AS s FOR UPDATE;
    v_now := ration.clock_v1(p_now);
    o_expires_at := v_now + p_lasts;
    INSERT INTO ration.kill_switch (prefix, expires_at, actor, reason, created_at)
    VALUES (p_prefix, o_expires_at, p_actor, p_reason, v_now)
    ON CONFLICT (prefix) DO UPDATE
    SET expires_at = excluded.expires_at, actor = excluded.actor, reason = excluded.reason, created_at = excluded.created_at;
    PERFORM ration.apply_kill_switch_v1(p_prefix, o_generation);
    SELECT count(*) INTO o_policies
    FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version)
    WHERE starts_with(p.id, p_prefix) AND p.parent IS NULL AND p.mode = 'shadow'
      AND coalesce(v.content ->> 'mode', 'enforce') = 'enforce';
    INSERT INTO ration.audit (at, actor, role, action, after, reason, request_id)
    VALUES (v_now, p_actor, p_role, 'kill-switch.thrown', json_build_object('prefix', p_prefix, 'forSeconds', p_lasts / 1000000),
            p_reason, p_request_id);
    UPDATE ration.policy_set SET generation = o_generation;
    PERFORM pg_notify('ration_policy', o_generation::text);
END $$;

-- put_override_v1: sets the override of one key of a policy, in the place of the one that it has, in one transaction with its
-- audit row and the bump of the generation.
--
-- Another limit is kept by a policy of its own: the policy with that limit, its id the policy's, '!' and the override's number,
-- its version the policy's. Its bucket begins with what the key's bucket holds, by keep: nothing is gained that was not
-- earned. Windows, logs and slots begin with nothing used.
--
-- Arguments: the policy's id; the values of its `per` by name; limit, exempt or blocked. p_limit is a whole limit as in policies,
--        with n, d and capacity as in put_policy_v1, NULL for the other actions. It ends at p_expires_at, or p_lasts after
--        now, or with both NULL not by itself. Who asks, why, and the id of his request.
-- Answers: o_outcome set | replaced | absent (there is no such policy) | key (the attributes are not those of `per`, which are
--        o_members) | limit (it is of another kind than the policy's, by o_members) | expired (p_expires_at has passed) | full
--        (1,000 overrides of the policy, or 100,000 in all, are there); nothing was changed by the last five. Number of the
--        override, generation.
-- Units: n in units per microsecond, d in units per token, capacity in tokens, instants and p_lasts in microseconds.
-- Clock: clock_timestamp(), read under the lock.
-- Locks: the row of ration.policy_set, first; then the bucket of the key.
-- SQLSTATE: RN003 from clock_v1; RN005 from install_version_v1; 23502 23514 what is missing or no action; 57014 statement_timeout.
CREATE OR REPLACE FUNCTION ration.put_override_v1(
    p_id text, p_attributes jsonb, p_action text, p_limit json, p_n bigint, p_d bigint, p_capacity bigint, p_expires_at bigint,
    p_lasts bigint, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL,
    OUT o_outcome text, OUT o_number bigint, OUT o_generation bigint, OUT o_members text[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_policy  ration.policy;
    v_content json;
    v_key     uuid;
    v_now     bigint;
    v_before  ration.override;
    v_shown   json;             -- v_before, for the audit
    v_from    ration.policy;    -- whose bucket the key has used so far
    v_balance bigint;           -- what that held, under the other limit
    v_limited int;
    v_after   ration.override;
    b         record;           -- what v_from's bucket held
BEGIN
    SELECT s.generation + 1 INTO o_generation FROM ration.policy_set AS s FOR UPDATE;
    v_now := ration.clock_v1(p_now);
    SELECT p.* INTO v_policy FROM ration.policy AS p WHERE p.id = p_id AND p.parent IS NULL AND p.mode <> 'deleted';
    SELECT v.content INTO v_content FROM ration.policy_version AS v WHERE v.number = v_policy.number AND v.version = v_policy.version;
    SELECT o.o_members, o.o_key INTO o_members, v_key FROM ration.override_key_v1(v_content, p_id, p_attributes) AS o;
    SELECT o.* INTO v_before FROM ration.override AS o WHERE o.policy = v_policy.number AND o.key = v_key;
    IF v_policy.number IS NULL THEN
        o_outcome := 'absent';
    ELSIF v_key IS NULL THEN
        o_outcome := 'key';
    ELSIF p_expires_at <= v_now THEN
        o_outcome := 'expired';
    ELSIF v_before.number IS NULL AND ((SELECT count(*) FROM ration.override) >= 100000
          OR (SELECT count(*) FROM ration.override AS o WHERE o.policy = v_policy.number) >= 1000) THEN
        o_outcome := 'full';
    ELSIF p_action = 'limit' THEN
        SELECT array_agg(m.name) INTO o_members
        FROM unnest(ARRAY['algorithm', 'windowSeconds', 'ttlSeconds', 'strict']) AS m (name)
        -- As jsonb, in which 60 and 60.0 are one number.
        WHERE (v_content -> 'limit' -> m.name)::jsonb IS DISTINCT FROM (p_limit -> m.name)::jsonb;
        IF o_members IS NOT NULL THEN
            o_outcome := 'limit';
        END IF;
    END IF;
    IF o_outcome IS NOT NULL THEN
        RETURN;
    END IF;

    o_outcome := CASE WHEN v_before.number IS NULL THEN 'set' ELSE 'replaced' END;
    o_number := nextval(pg_get_serial_sequence('ration.override', 'number'));
    v_shown := ration.override_json_v1(v_before);
    IF p_action = 'limit' THEN
        SELECT p.* INTO v_from FROM ration.policy AS p WHERE p.number = coalesce(v_before.limited, v_policy.number);
        IF v_policy.algorithm = 'token_bucket' THEN
            b := ration.drain_v1(v_from.number, ration.bucket_key(v_from.id, p_attributes), v_now);
        END IF;
        SELECT i.o_number INTO v_limited
        FROM ration.install_version_v1(p_id || '!' || o_number, ration.override_content_v1(v_content, p_limit), p_n, p_d, p_capacity,
                                       'keep', NULL, false, v_policy.number, o_generation, v_now) AS i;
        -- It has one key: what an absent row of it stands for is what that one holds.
        IF v_policy.algorithm = 'token_bucket' THEN
            v_balance := ration.clamped_v1(ration.converted_v1('keep', b.o_balance, v_from.d, v_from.capacity_units, p_d, p_capacity * p_d),
                                           p_capacity * p_d);
            UPDATE ration.policy SET idle_balance = v_balance, idle_at = b.o_at WHERE number = v_limited;
            UPDATE ration.policy_version SET idle_balance = v_balance, idle_at = b.o_at WHERE number = v_limited;
        END IF;
    END IF;
    IF v_before.number IS NOT NULL THEN
        PERFORM ration.end_overrides_v1(ARRAY[v_before], v_limited IS NULL, o_generation, v_now);
    END IF;
    INSERT INTO ration.override AS o (number, policy, key, attributes, action, limited, expires_at, actor, reason, created_at, generation)
    OVERRIDING SYSTEM VALUE
    VALUES (o_number, v_policy.number, v_key, p_attributes, p_action, v_limited, coalesce(p_expires_at, v_now + p_lasts), p_actor,
            p_reason, v_now, o_generation)
    RETURNING o.* INTO v_after;
    -- Instances load a policy with its overrides.
    UPDATE ration.policy SET generation = o_generation WHERE number = v_policy.number;
    UPDATE ration.policy_set SET generation = o_generation;
    INSERT INTO ration.audit (at, actor, role, action, policy, before, after, reason, request_id)
    VALUES (v_now, p_actor, p_role, 'override.set', p_id, v_shown, ration.override_json_v1(v_after), p_reason, p_request_id);
    PERFORM pg_notify('ration_policy', o_generation::text);
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

-- remove_kill_switch_v1: takes a kill switch back: its policies are enforced again, unless another switch lies over them.
--
-- Arguments: the prefix that it was thrown for; who asks, why, and the id of his request.
-- Answers: whether there was one; the generation.
-- Units: instants in microseconds. Clock: clock_timestamp(), read under the lock.
-- Locks: the row of ration.policy_set, first.
-- SQLSTATE: RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.remove_kill_switch_v1(
    p_prefix text, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL,
    OUT o_removed boolean, OUT o_generation bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    SELECT s.generation INTO o_generation FROM ration.policy_set AS s FOR UPDATE;
    DELETE FROM ration.kill_switch AS k WHERE k.prefix = p_prefix;
    o_removed := FOUND;
    IF o_removed THEN
        o_generation := o_generation + 1;
        PERFORM ration.apply_kill_switch_v1(p_prefix, o_generation);
        INSERT INTO ration.audit (at, actor, role, action, before, reason, request_id)
        VALUES (ration.clock_v1(p_now), p_actor, p_role, 'kill-switch.taken-back', json_build_object('prefix', p_prefix), p_reason,
                p_request_id);
        UPDATE ration.policy_set SET generation = o_generation;
        PERFORM pg_notify('ration_policy', o_generation::text);
    END IF;
END $$;

-- remove_override_v1: takes the override of one key of a policy away, in one transaction with its audit row and the bump of the
-- generation.
--
-- Arguments: the policy's id; the values of its `per` by name; who asks, why, and the id of his request.
-- Answers: o_outcome removed | absent (there is no such policy, or no override for the key) | key (the attributes are not those of
--        `per`, which are o_members); the generation.
-- Units: instants in microseconds. Clock: clock_timestamp(), read under the lock.
-- Locks: the row of ration.policy_set, first; then the buckets of the key.
-- SQLSTATE: RN003 from clock_v1; 57014 statement_timeout.
CREATE OR REPLACE FUNCTION ration.remove_override_v1(
    p_id text, p_attributes jsonb, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL,
    OUT o_outcome text, OUT o_generation bigint, OUT o_members text[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_content  json;
    v_key      uuid;
    v_override ration.override;
    v_shown    json;
    v_now      bigint;
BEGIN
    SELECT s.generation INTO o_generation FROM ration.policy_set AS s FOR UPDATE;
    SELECT v.content INTO v_content
    FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version)
    WHERE p.id = p_id AND p.parent IS NULL AND p.mode <> 'deleted';
    SELECT o.o_members, o.o_key INTO o_members, v_key FROM ration.override_key_v1(v_content, p_id, p_attributes) AS o;
    SELECT o.* INTO v_override FROM ration.override AS o JOIN ration.policy AS p ON p.number = o.policy
    WHERE p.id = p_id AND o.key = v_key;
    IF v_content IS NOT NULL AND v_key IS NULL THEN
        o_outcome := 'key';
        RETURN;
    ELSIF v_override.number IS NULL THEN
        o_outcome := 'absent';
        RETURN;
    END IF;
    o_outcome := 'removed';
    o_generation := o_generation + 1;
    v_now := ration.clock_v1(p_now);
    v_shown := ration.override_json_v1(v_override);
    PERFORM ration.end_overrides_v1(ARRAY[v_override], true, o_generation, v_now);
    UPDATE ration.policy SET generation = o_generation WHERE number = v_override.policy;
    UPDATE ration.policy_set SET generation = o_generation;
    INSERT INTO ration.audit (at, actor, role, action, policy, before, reason, request_id)
    VALUES (v_now, p_actor, p_role, 'override.removed', p_id, v_shown, p_reason, p_request_id);
    PERFORM pg_notify('ration_policy', o_generation::text);
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

-- revoke_token_v1: a token lets nobody in any more, in one transaction with its audit row.
--
-- Arguments: the token's number; the reason goes into the audit with the name of the session's user.
-- Answers: revoked | unchanged (it was revoked before) | unknown (there is no such token).
-- Units: none. Clock: clock_timestamp(), or p_now on a test clock.
-- Locks: the token's row, then the audit's.
-- SQLSTATE: RN003 from clock_v1.
CREATE OR REPLACE FUNCTION ration.revoke_token_v1(p_id bigint, p_reason text, p_now bigint DEFAULT NULL)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_now   constant bigint := ration.clock_v1(p_now);
    v_token ration.token;
BEGIN
    SELECT t.* INTO v_token FROM ration.token AS t WHERE t.id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'unknown';
    ELSIF v_token.revoked_at IS NOT NULL THEN
        RETURN 'unchanged';
    END IF;
    UPDATE ration.token AS t SET revoked_at = v_now WHERE t.id = p_id;
    INSERT INTO ration.audit (at, actor, action, before, reason, request_id)
    VALUES (v_now, session_user, 'token.revoked',
            json_build_object('id', p_id, 'name', v_token.name, 'role', v_token.role, 'scope', v_token.scope), p_reason, '');
    PERFORM pg_notify('ration_token', '');
    RETURN 'revoked';
END $$;

-- sweep_stretch_v1: brings a stretch of a table to the versions in force, for the sweeps of a pass. Buckets of older versions are
-- carried over, as a decision on them would. Windows and logs of older versions count no more and are deleted, and so is
-- whatever a policy has in a table that is not the place of its state any more.
--
-- Arguments: the pass; the table's place, see state_place_v1; the shard; the stretch, behind p_after up to p_until.
-- Answers: whether an older row is left, because others hold it.
-- Units: none. Clock: none.
-- Locks: the rows it writes, ascending by key, by SKIP LOCKED; PostgreSQL checks a row again under its lock when another session has
--        changed it since the look. The caller has locked the sweeps.
-- SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.sweep_stretch_v1(
    p_pass bigint, p_place int, p_shard int, p_after uuid, p_until uuid, OUT o_left boolean)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
-- Whether analysed or not: the rows of the stretch, and what each of them needs.
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $$
DECLARE
    c_older constant text := '
        FROM ration.%1$I AS t
        CROSS JOIN LATERAL (SELECT w.version FROM ration.sweep AS w WHERE w.policy = t.policy AND w.pass = $1 OFFSET 0) AS w
        JOIN ration.policy AS p ON p.number = t.policy
        WHERE t.shard = $3 AND t.key > $4 AND t.key <= $5 AND t.version < w.version';
    c_placed constant text := '
        ration.state_place_v1(p.algorithm, p.strict, p.durability) = $2';
    v_table constant text := ration.state_table_v1(p_place);
BEGIN
    -- Planned anew each time: once in a while, and over any table.
    IF p_place <= 2 THEN
        EXECUTE format('
            WITH held AS (
                SELECT t.key, t.policy, t.version, t.balance, t.at, p.version AS now' || c_older || ' AND' || c_placed || '
                ORDER BY t.key FOR NO KEY UPDATE OF t SKIP LOCKED
            ), carried AS (
                SELECT h.key, h.policy, h.now, c.o_balance, c.o_at, c.o_clamped
                FROM held AS h CROSS JOIN LATERAL ration.carry_v1(h.policy, h.version, h.now, h.balance, h.at) AS c
            ), written AS (
                UPDATE ration.%1$I AS t SET balance = c.o_balance, at = c.o_at, version = c.now
                FROM carried AS c WHERE t.shard = $3 AND t.key = c.key
            )
            UPDATE ration.sweep AS w SET settled = w.settled + n.settled, clamped = w.clamped + n.clamped
            FROM (SELECT c.policy, count(*) AS settled, count(*) FILTER (WHERE c.o_clamped) AS clamped
                  FROM carried AS c GROUP BY c.policy) AS n
            WHERE w.policy = n.policy', v_table)
            USING p_pass, p_place, p_shard, p_after, p_until;
    END IF;
    EXECUTE format('
        WITH held AS (
            SELECT t.key' || c_older || ' AND ($2 > 2 OR NOT' || c_placed || ')
            ORDER BY t.key FOR NO KEY UPDATE OF t SKIP LOCKED
        ), deleted AS (
            DELETE FROM ration.%1$I AS t USING held AS h WHERE t.shard = $3 AND t.key = h.key RETURNING t.policy
        )
        UPDATE ration.sweep AS w SET settled = w.settled + n.settled
        FROM (SELECT d.policy, count(*) AS settled FROM deleted AS d GROUP BY d.policy) AS n
        WHERE w.policy = n.policy', v_table)
        USING p_pass, p_place, p_shard, p_after, p_until;
    EXECUTE format('SELECT EXISTS (SELECT' || c_older || ' AND $2 > 0)', v_table)
        INTO o_left USING p_pass, p_place, p_shard, p_after, p_until;
END $$;

-- sweep_v1: does one piece of what open sweeps have to do. A pass goes through the tables, stretch by stretch, and serves all
-- sweeps that were open when it began; at its end it closes them.
--
-- Arguments: the shard; rows to examine; p_share: of the time, one part in so many goes into pieces, whoever does them.
-- Answers: how long to rest before the next piece; NULL when there was nothing to do, or another session is doing it.
-- Units: rows, microseconds.
-- Clock: clock_timestamp() once a call, or p_now on a test clock; what a piece took is by clock_timestamp() always.
-- Locks: the pass, by SKIP LOCKED: one session does a piece at a time. Then the sweeps of the pass, then the rows it writes, see
--        sweep_stretch_v1. A piece that closes sweeps locks no rows, and the row of ration.policy_set before the sweeps, as
--        policy changes do.
-- SQLSTATE: RN003 from clock_v1; RN001 RN004 from stretch_v1; RN004 p_share below 1.
CREATE OR REPLACE FUNCTION ration.sweep_v1(p_shard int, p_rows int, p_share int, p_now bigint DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c_grace constant bigint      := 1000000;   -- calls that began under the version before are over by then
    c_ahead constant bigint      := 60000000;  -- longer than any rest: the clock was set back meanwhile
    v_start constant timestamptz := clock_timestamp();
    v_now   constant bigint      := ration.clock_v1(p_now);
    v_rest           bigint;
    v_pass           ration.sweep_pass;
    v_over           boolean := true;  -- with the table in hand
    s                record;
BEGIN
    IF (p_share >= 1) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a sweep takes one part in 1 or more of the time';
    END IF;
    IF NOT EXISTS (SELECT FROM ration.sweep AS w WHERE w.pass IS NOT NULL OR w.began_at <= v_now - c_grace) THEN
        RETURN NULL;
    END IF;
    PERFORM ration.commit_lazily_v1();  -- a piece that is lost is done again, with what it counted
    SELECT p.* INTO v_pass FROM ration.sweep_pass AS p
    WHERE p.next_at <= v_now OR p.next_at > v_now + c_ahead FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;

    IF NOT EXISTS (SELECT FROM ration.sweep AS w WHERE w.pass = v_pass.pass) THEN
        v_pass.pass := v_pass.pass + 1;
        v_pass.place := 0;
        UPDATE ration.sweep SET pass = v_pass.pass WHERE began_at <= v_now - c_grace;
    ELSIF v_pass.place = 7 THEN
        PERFORM FROM ration.policy_set FOR UPDATE;
        PERFORM ration.close_sweep_v1(w.policy, v_now, 'every balance is settled') FROM ration.sweep AS w WHERE w.pass = v_pass.pass;
    ELSE
        PERFORM FROM ration.sweep AS w WHERE w.pass = v_pass.pass FOR NO KEY UPDATE;
        s := ration.stretch_v1(ration.state_table_v1(v_pass.place), 'key', p_shard, v_pass.after, p_rows);
        -- Where others hold a row, the next piece is this stretch once more.
        IF ration.sweep_stretch_v1(v_pass.pass, v_pass.place, p_shard, s.o_after, s.o_until) THEN
            v_over := false;
        ELSIF s.o_last IS NOT NULL THEN
            v_over := false;
            v_pass.after := s.o_last;
        END IF;
    END IF;
    IF v_over THEN
        -- The next table that may hold anything of these policies; behind the last one, which is 6, the sweeps are closed.
        v_pass.after := '00000000-0000-0000-0000-000000000000';
        SELECT coalesce(min(n.place), 7) INTO v_pass.place
        FROM ration.sweep AS w
        JOIN ration.policy AS p ON p.number = w.policy
        JOIN ration.policy_version AS v ON v.number = w.policy AND v.version = w.version
        JOIN generate_series(v_pass.place + 1, 6) AS n (place)
             ON v.balances = 'restart' OR ration.state_place_v1(p.algorithm, p.strict, p.durability) = n.place
        WHERE w.pass = v_pass.pass;
    END IF;
    v_rest := (p_share - 1) * (extract(epoch FROM clock_timestamp() - v_start) * 1000000)::bigint;
    UPDATE ration.sweep_pass SET pass = v_pass.pass, place = v_pass.place, after = v_pass.after, next_at = v_now + v_rest;
    RETURN v_rest;
END $$;

-- clean_logs_v1: deletes logs of which no entry counts any more, where an idle key is as free: then no answer changes. What was
-- written before the policy's state began anew counts no more at all.
--
-- Arguments: as clean_v1. Answers: how many rows were deleted and the last key examined, NULL when the end was reached.
-- Units: rows. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the rows it deletes, ascending by key, by SKIP LOCKED, as clean_v1 does.
-- SQLSTATE: RN003 from clock_v1; RN001 RN004 from stretch_v1.
CREATE OR REPLACE FUNCTION ration.clean_logs_v1(
    p_durable boolean, p_shard int, p_after uuid, p_rows int, p_now bigint DEFAULT NULL, OUT o_deleted int, OUT o_last uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_table constant text   := CASE p_durable WHEN true THEN 'log_durable' WHEN false THEN 'log_fast' END;
    v_now   constant bigint := ration.clock_v1(p_now);
    s                record := ration.stretch_v1(v_table, 'key', p_shard, p_after, p_rows);
BEGIN
    o_last := s.o_last;
    -- Planned anew each time: once in a while, and over either table. The newest entry is the last pair.
    EXECUTE format('DELETE FROM ration.%1$I AS d
                    USING (SELECT l.key FROM ration.%1$I AS l JOIN ration.policy AS p ON p.number = l.policy
                           CROSS JOIN LATERAL (SELECT ration.idle_log_v1(p) AS entries) AS idle
                           WHERE l.shard = $1 AND l.key > $2 AND l.key <= $3
                             AND l.version <= p.version  -- not by what the policy was before
                             AND NOT EXISTS (SELECT FROM ration.sweep AS o WHERE o.policy = l.policy AND o.version > l.version)
                             AND (l.version < p.since
                                  OR coalesce(l.entries[cardinality(l.entries) - 1] <= $4 - p.span, true)
                                     AND coalesce(idle.entries[cardinality(idle.entries) - 1] <= $4 - p.span, true))
                           ORDER BY l.key FOR NO KEY UPDATE OF l SKIP LOCKED) AS idle
                    WHERE d.shard = $1 AND d.key = idle.key', v_table)
        USING p_shard, s.o_after, s.o_until, v_now;
    GET DIAGNOSTICS o_deleted = ROW_COUNT;
END $$;

-- clean_v1: deletes buckets that hold exactly what an idle bucket holds: then no answer changes, since an absent bucket
-- is an idle bucket. What was written before the policy's state began anew is idle whatever it holds. What a sweep
-- is still to settle is left to it: it counts them. Examines one stretch of keys a call; call it again from where it ended until
-- that is NULL.
--
-- Arguments: the shard, the durability of the table, the key to go on behind (NULL: from the first), rows to examine.
-- Answers: how many rows were deleted and the last key examined, NULL when the end was reached.
-- Units: rows. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the rows it deletes, ascending by key, by SKIP LOCKED: it never waits, and PostgreSQL checks a row again under
--        its lock when another session has changed it since the look.
-- SQLSTATE: RN003 from clock_v1; RN001 RN004 from stretch_v1.
CREATE OR REPLACE FUNCTION ration.clean_v1(
    p_durable boolean, p_shard int, p_after uuid, p_rows int, p_now bigint DEFAULT NULL, OUT o_deleted int, OUT o_last uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_table constant text   := CASE p_durable WHEN true THEN 'bucket_durable' WHEN false THEN 'bucket_fast' END;
    v_now   constant bigint := ration.clock_v1(p_now);
    s                record := ration.stretch_v1(v_table, 'key', p_shard, p_after, p_rows);
BEGIN
    o_last := s.o_last;
    -- Planned anew each time: once in a while, and over either table.
    EXECUTE format('DELETE FROM ration.%1$I AS d
                    USING (SELECT b.key FROM ration.%1$I AS b JOIN ration.policy AS p ON p.number = b.policy
                           WHERE b.shard = $1 AND b.key > $2 AND b.key <= $3
                             AND b.version <= p.version  -- not by what the policy was before
                             AND NOT EXISTS (SELECT FROM ration.sweep AS o WHERE o.policy = b.policy AND o.version > b.version)
                             AND CASE WHEN b.version < p.since THEN true
                                      ELSE b.at <= $4 AND p.idle_at <= $4
                                           AND ration.balance_at_v1(b.policy, b.version, b.balance, b.at, $4)
                                             = ration.settled_v1(p.idle_balance, p.idle_at, $4, p.n, p.capacity_units) END
                           ORDER BY b.key FOR NO KEY UPDATE OF b SKIP LOCKED) AS idle
                    WHERE d.shard = $1 AND d.key = idle.key', v_table)
        USING p_shard, s.o_after, s.o_until, v_now;
    GET DIAGNOSTICS o_deleted = ROW_COUNT;
END $$;

-- clean_windows_v1: deletes windows that no later instant counts: then no answer changes. A window counts until it has
-- passed, and in a sliding one until the window behind it has passed too. An idle key is as free by then: no row begins
-- before the window that an idle key has. What was written before the policy's state began anew counts no more at all.
--
-- Arguments: as clean_v1. Answers: how many rows were deleted and the last key examined, NULL when the end was reached.
-- Units: rows. Clock: clock_timestamp() once a call, or p_now on a test clock.
-- Locks: the rows it deletes, ascending by key, by SKIP LOCKED, as clean_v1 does.
-- SQLSTATE: RN003 from clock_v1; RN001 RN004 from stretch_v1.
CREATE OR REPLACE FUNCTION ration.clean_windows_v1(
    p_durable boolean, p_shard int, p_after uuid, p_rows int, p_now bigint DEFAULT NULL, OUT o_deleted int, OUT o_last uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_table constant text   := CASE p_durable WHEN true THEN 'window_durable' WHEN false THEN 'window_fast' END;
    v_now   constant bigint := ration.clock_v1(p_now);
    s                record := ration.stretch_v1(v_table, 'key', p_shard, p_after, p_rows);
BEGIN
    o_last := s.o_last;
    -- Planned anew each time: once in a while, and over either table.
    EXECUTE format('DELETE FROM ration.%1$I AS d
                    USING (SELECT w.key FROM ration.%1$I AS w JOIN ration.policy AS p ON p.number = w.policy
                           WHERE w.shard = $1 AND w.key > $2 AND w.key <= $3
                             AND w.version <= p.version  -- not by what the policy was before
                             AND NOT EXISTS (SELECT FROM ration.sweep AS o WHERE o.policy = w.policy AND o.version > w.version)
                             AND (w.version < p.since
                                  OR w.start + p.span * CASE p.algorithm WHEN ''fixed_window'' THEN 1 ELSE 2 END <= $4)
                           ORDER BY w.key FOR NO KEY UPDATE OF w SKIP LOCKED) AS idle
                    WHERE d.shard = $1 AND d.key = idle.key', v_table)
        USING p_shard, s.o_after, s.o_until, v_now;
    GET DIAGNOSTICS o_deleted = ROW_COUNT;
END $$;

-- decide_guard_v1: the shape of decide_v1's arguments. What would cost a statement to find out is found out on the way: by
-- decide_v1 that p_claims ascends, by decide_write_v1 that no key occurs twice.
--
-- Units: tokens, microseconds. Clock: none. Locks: none.
-- SQLSTATE: RN004 anything else than 1 to 1,024 claims with at most 1,024 checks and keys, all operations distinct,
--           costs >= 1, stated costs and retention >= 0, a peek without operation, under `alone` one claim.
CREATE OR REPLACE FUNCTION ration.decide_guard_v1(
    p_generation bigint, p_operations uuid[], p_contents uuid[], p_stated bigint[], p_peeks boolean[], p_policies int[],
    p_keys uuid[], p_claims int[], p_cells int[], p_costs bigint[], p_priced boolean[], p_retention bigint, p_hold text)
RETURNS void LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    v_claims constant int := cardinality(p_stated);
    v_keys   constant int := cardinality(p_keys);
    v_checks constant int := cardinality(p_claims);
BEGIN
    -- NULL must never stand for nothing to pay: each condition has to be true, not merely not false.
    IF (p_generation IS NOT NULL AND p_retention >= 0 AND p_hold IN ('try', 'wait', 'skip', 'alone')
        AND v_claims BETWEEN 1 AND 1024 AND v_keys <= 1024 AND v_checks <= 1024 AND (v_claims = 1 OR p_hold <> 'alone')
        AND ration.list_v1(p_stated, v_claims) AND 0 <= ALL (p_stated) AND ration.list_v1(p_peeks, v_claims)
        AND cardinality(p_operations) = v_claims AND array_upper(p_operations, 1) = v_claims
        AND cardinality(p_contents) = v_claims AND array_upper(p_contents, 1) = v_claims
        AND ration.list_v1(p_keys, v_keys) AND ration.list_v1(p_policies, v_keys)
        AND ration.list_v1(p_claims, v_checks) AND ration.list_v1(p_cells, v_checks)
        AND ration.list_v1(p_costs, v_checks) AND 1 <= ALL (p_costs) AND ration.list_v1(p_priced, v_checks)
        AND (array_remove(p_operations, NULL) = '{}'
             OR NOT EXISTS (SELECT FROM unnest(p_operations, p_contents, p_peeks) AS c (operation, content, peek)
                            WHERE c.operation IS NOT NULL AND (c.content IS NULL OR c.peek))
                AND cardinality(array_remove(p_operations, NULL)) = (SELECT count(DISTINCT c.operation) FROM unnest(p_operations) AS c (operation)))
       ) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'these arrays are no claims: see the header of decide_guard_v1';
    END IF;
END $$;

-- decide_write_v1: writes what a decide_v1 call charged: each changed row once.
--
-- Arguments: by cell, figures as decide_read_v1 gives them; p_left is what is left of p_room when all is charged. p_writers:
--        who wrote each row last; one that somebody else wrote since, or that is not there any more, is left as it is. NULL: the
--        rows are locked. p_undo: each row in p_rows is written as decide_read_v1 found it. Slots are inserted by decide_v1.
-- Answers: o_all, whether every row that is charged was written: none is while a change is being swept, unless the rows are
--        locked, since what is settled of it is counted; o_cells, those whose rows were, and o_rows, where these are now.
-- Units: tokens and parts of 1/d token, microseconds. Clock: none, the instant is given.
-- Locks: the rows that it writes, by place and in the order of cells.
-- SQLSTATE: RN004 more was charged than there was room for: a claim asks a key twice.
CREATE OR REPLACE FUNCTION ration.decide_write_v1(
    p_now bigint, p_rows tid[], p_writers xid[], p_places int[], p_versions int[], p_room bigint[], p_left bigint[], p_base bigint[],
    p_at bigint[], p_previous bigint[], p_marks bigint[], p_logs ration.log_entries[],
    p_undo boolean DEFAULT false, OUT o_all boolean, OUT o_cells int[], OUT o_rows tid[])
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET enable_memoize = off
AS $$
DECLARE
    v_changed  int;
    v_over     boolean;
    v_sweeping boolean;
BEGIN
    SELECT count(*) FILTER (WHERE p_places[i] < 7), bool_or(p_left[i] < 0), EXISTS (SELECT FROM ration.sweep) AND NOT p_undo
    INTO v_changed, v_over, v_sweeping
    FROM generate_series(1, cardinality(p_left)) AS i WHERE p_left[i] < p_room[i] OR (p_undo AND p_rows[i] IS NOT NULL);
    IF v_over THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'more is charged than there is room for: a claim asks a key twice';
    END IF;
    IF v_sweeping AND p_writers IS NOT NULL THEN
        o_all := false;
        RETURN;
    END IF;
    IF v_sweeping THEN
        PERFORM ration.commit_lazily_v1();  -- decide_v1 has the last word
        -- Before they are written: what a row was under its older version is not to be seen behind that.
        PERFORM ration.append_carried_v1(array_agg(t.policy), array_agg(t.version), array_agg(t.now), array_agg(t.clamped))
        FROM (SELECT p_rows[i] AS at, p_places[i] AS place, p_versions[i] AS version FROM generate_series(1, cardinality(p_rows)) AS i
              WHERE p_left[i] < p_room[i] OFFSET 0) AS q
        CROSS JOIN LATERAL (
            SELECT f.policy, f.version, q.version AS now, c.o_clamped AS clamped
            FROM ration.bucket_fast AS f, ration.carry_v1(f.policy, f.version, q.version, f.balance, f.at) AS c
            WHERE q.place = 1 AND f.ctid = q.at AND f.version < q.version
            UNION ALL SELECT f.policy, f.version, q.version, c.o_clamped
            FROM ration.bucket_durable AS f, ration.carry_v1(f.policy, f.version, q.version, f.balance, f.at) AS c
            WHERE q.place = 2 AND f.ctid = q.at AND f.version < q.version
            UNION ALL SELECT f.policy, f.version, q.version, false FROM ration.window_fast AS f
            WHERE q.place = 3 AND f.ctid = q.at AND f.version < q.version
            UNION ALL SELECT f.policy, f.version, q.version, false FROM ration.window_durable AS f
            WHERE q.place = 4 AND f.ctid = q.at AND f.version < q.version
            UNION ALL SELECT f.policy, f.version, q.version, false FROM ration.log_fast AS f
            WHERE q.place = 5 AND f.ctid = q.at AND f.version < q.version
            UNION ALL SELECT f.policy, f.version, q.version, false FROM ration.log_durable AS f
            WHERE q.place = 6 AND f.ctid = q.at AND f.version < q.version OFFSET 0) AS t;
    END IF;
    IF 1 = ANY (p_places) THEN
        WITH wrote AS (
            UPDATE ration.bucket_fast AS t
            SET balance = p_base[q.cell] - (p_room[q.cell] - p_left[q.cell]), at = greatest(p_at[q.cell], p_now),
                version = p_versions[q.cell], took = 1
            FROM (SELECT i AS cell, p_rows[i] AS row, p_writers[i] AS writer FROM generate_series(1, cardinality(p_rows)) AS i
                  WHERE p_places[i] = 1 AND p_rows[i] IS NOT NULL AND (p_undo OR p_left[i] < p_room[i]) OFFSET 0) AS q
            WHERE t.ctid = q.row AND (q.writer IS NULL OR t.xmin = q.writer)
            RETURNING q.cell, t.ctid AS row)
        SELECT o_cells || array_agg(w.cell), o_rows || array_agg(w.row) INTO o_cells, o_rows FROM wrote AS w;
    END IF;
    IF 2 = ANY (p_places) THEN
        WITH wrote AS (
            UPDATE ration.bucket_durable AS t
            SET balance = p_base[q.cell] - (p_room[q.cell] - p_left[q.cell]), at = greatest(p_at[q.cell], p_now),
                version = p_versions[q.cell], took = 1
            FROM (SELECT i AS cell, p_rows[i] AS row, p_writers[i] AS writer FROM generate_series(1, cardinality(p_rows)) AS i
                  WHERE p_places[i] = 2 AND p_rows[i] IS NOT NULL AND (p_undo OR p_left[i] < p_room[i]) OFFSET 0) AS q
            WHERE t.ctid = q.row AND (q.writer IS NULL OR t.xmin = q.writer)
            RETURNING q.cell, t.ctid AS row)
        SELECT o_cells || array_agg(w.cell), o_rows || array_agg(w.row) INTO o_cells, o_rows FROM wrote AS w;
    END IF;
    IF 3 = ANY (p_places) THEN
        WITH wrote AS (
            UPDATE ration.window_fast AS t
            SET start = p_at[q.cell], current = p_base[q.cell] + p_room[q.cell] - p_left[q.cell], previous = p_previous[q.cell],
                version = p_versions[q.cell]
            FROM (SELECT i AS cell, p_rows[i] AS row, p_writers[i] AS writer FROM generate_series(1, cardinality(p_rows)) AS i
                  WHERE p_places[i] = 3 AND p_rows[i] IS NOT NULL AND (p_undo OR p_left[i] < p_room[i]) OFFSET 0) AS q
            WHERE t.ctid = q.row AND (q.writer IS NULL OR t.xmin = q.writer)
            RETURNING q.cell, t.ctid AS row)
        SELECT o_cells || array_agg(w.cell), o_rows || array_agg(w.row) INTO o_cells, o_rows FROM wrote AS w;
    END IF;
    IF 4 = ANY (p_places) THEN
        WITH wrote AS (
            UPDATE ration.window_durable AS t
            SET start = p_at[q.cell], current = p_base[q.cell] + p_room[q.cell] - p_left[q.cell], previous = p_previous[q.cell],
                version = p_versions[q.cell]
            FROM (SELECT i AS cell, p_rows[i] AS row, p_writers[i] AS writer FROM generate_series(1, cardinality(p_rows)) AS i
                  WHERE p_places[i] = 4 AND p_rows[i] IS NOT NULL AND (p_undo OR p_left[i] < p_room[i]) OFFSET 0) AS q
            WHERE t.ctid = q.row AND (q.writer IS NULL OR t.xmin = q.writer)
            RETURNING q.cell, t.ctid AS row)
        SELECT o_cells || array_agg(w.cell), o_rows || array_agg(w.row) INTO o_cells, o_rows FROM wrote AS w;
    END IF;
    IF 5 = ANY (p_places) THEN
        WITH wrote AS (
            UPDATE ration.log_fast AS t
            SET entries = CASE WHEN p_undo THEN (p_logs[q.cell]).entries ELSE
                    ration.log_charged_v1((p_logs[q.cell]).entries, p_marks[q.cell], p_room[q.cell] - p_left[q.cell]) END,
                version = p_versions[q.cell]
            FROM (SELECT i AS cell, p_rows[i] AS row, p_writers[i] AS writer FROM generate_series(1, cardinality(p_rows)) AS i
                  WHERE p_places[i] = 5 AND p_rows[i] IS NOT NULL AND (p_undo OR p_left[i] < p_room[i]) OFFSET 0) AS q
            WHERE t.ctid = q.row AND (q.writer IS NULL OR t.xmin = q.writer)
            RETURNING q.cell, t.ctid AS row)
        SELECT o_cells || array_agg(w.cell), o_rows || array_agg(w.row) INTO o_cells, o_rows FROM wrote AS w;
    END IF;
    IF 6 = ANY (p_places) THEN
        WITH wrote AS (
            UPDATE ration.log_durable AS t
            SET entries = CASE WHEN p_undo THEN (p_logs[q.cell]).entries ELSE
                    ration.log_charged_v1((p_logs[q.cell]).entries, p_marks[q.cell], p_room[q.cell] - p_left[q.cell]) END,
                version = p_versions[q.cell]
            FROM (SELECT i AS cell, p_rows[i] AS row, p_writers[i] AS writer FROM generate_series(1, cardinality(p_rows)) AS i
                  WHERE p_places[i] = 6 AND p_rows[i] IS NOT NULL AND (p_undo OR p_left[i] < p_room[i]) OFFSET 0) AS q
            WHERE t.ctid = q.row AND (q.writer IS NULL OR t.xmin = q.writer)
            RETURNING q.cell, t.ctid AS row)
        SELECT o_cells || array_agg(w.cell), o_rows || array_agg(w.row) INTO o_cells, o_rows FROM wrote AS w;
    END IF;
    o_all := coalesce(cardinality(o_cells), 0) = v_changed;
END $$;

-- decide_v1: the general path: decides claims, each on any number of policies of any algorithm, all or nothing, in the order
-- in which they stand; with operation ids, which replay what was decided before, and slots.
--
-- A first look reads every key without locks and decides everything. That stands for claims which an enforced policy denies
-- and for peeks, unless a claim before them charges one of their keys: they write nothing. What is left has its rows locked.
-- If these still hold what the first look saw, its decisions stand too; else they are read anew, by a new statement, since
-- one that waited for a lock still sees the other tables as they were, and decided again. With p_hold 'try' rows are written
-- where they were seen, without being locked before: nearly always nobody else has written them in between.
--
-- Arguments, by claim: p_operations names its operation id, NULL where it has none; p_contents the fingerprint of its
--        request, p_stated its stated cost, 0 for none; p_peeks whether it only asks.
--        By key: p_policies and p_keys, ascending, each key once.
--        By check: p_claims the claim (from 1, ascending), p_cells which of p_keys is its key (from 1), p_costs what it asks,
--        p_priced whether that is the request's own cost, which a settlement replaces. A claim without checks has an
--        operation id, and is only looked up.
--        p_retention: how long outcomes of operation ids are kept at least. p_hold: what to do about rows that others hold:
--        'wait' waits for them, until statement_timeout; 'try' does too, and where one was written since the first look, or a
--        change is being swept, charges nothing and answers 0 to all that was to be charged: ask again with 'wait'; 'skip'
--        leaves them out and inserts nothing (an uncommitted insert of another session cannot be skipped); 'alone', with one
--        claim, waits, but only if no other call waits so for its keys.
-- Answers: o_stale, true when the policy set in force is not that of p_generation: then nothing was decided. Else by claim
--        o_status: 0 again (a row was written or deleted meanwhile, or left out by the hold, or the policy changed), 1 decided,
--        2 replayed, 3 the operation id belongs to another request, 4 another call decides the same operation id at this
--        moment, 5 another session holds a row of it, 6 no checks and nothing stored; nothing was charged but under 1.
--        o_allowed, and o_at, the instant of the decision. By part, in the order of claims and checks: o_claim, o_policy,
--        o_version, o_admitted (this policy alone allows it), o_remaining, o_retry_after (0 when admitted, -1 never),
--        o_reset_after, o_slot and o_slot_expires, o_cost (what was charged, 0 for nothing).
-- Units: tokens, microseconds; waits are counted from o_at.
-- Clock: clock_timestamp() before the first look, and again behind the locks where rows changed meanwhile; p_now on a test
--        clock.
-- Locks: advisory locks on operation ids, tried and never waited for; then the rows of claims that may be allowed, by
--        decide_lock_v1, or those that are charged, by decide_write_v1: in the same order, by place and key.
-- SQLSTATE: RN001 RN002 from ready_v1, RN003 from clock_v1, RN004 from decide_guard_v1, and where p_claims does not ascend;
--           57014 statement_timeout, with nothing charged.
CREATE OR REPLACE FUNCTION ration.decide_v1(
    p_shard int, p_generation bigint, p_operations uuid[], p_contents uuid[], p_stated bigint[], p_peeks boolean[],
    p_policies int[], p_keys uuid[], p_claims int[], p_cells int[], p_costs bigint[], p_priced boolean[],
    p_retention bigint, p_hold text DEFAULT 'wait', p_now bigint DEFAULT NULL,
    OUT o_stale boolean, OUT o_now bigint, OUT o_status int[], OUT o_allowed boolean[], OUT o_at bigint[],
    OUT o_claim int[], OUT o_policy int[], OUT o_version int[], OUT o_admitted boolean[], OUT o_remaining bigint[],
    OUT o_retry_after bigint[], OUT o_reset_after bigint[], OUT o_slot uuid[], OUT o_slot_expires bigint[],
    OUT o_cost bigint[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Pinned plans, as in take_v1; and remembering what was looked up in a nested loop costs a small call more than it saves.
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET enable_memoize = off
AS $$
DECLARE
    v_operating boolean;  -- some claim has an operation id
    v_claims    constant int     := coalesce(cardinality(p_stated), 0);
    v_keys      constant int     := coalesce(cardinality(p_keys), 0);
    v_checks    constant int     := coalesce(cardinality(p_claims), 0);
    v_locked    boolean := false;  -- this look is the second one, under the locks
    v_stands    boolean;           -- what was decided stands
    s           record;            -- the keys, as decide_read_v1 gives them
    l           record;            -- the rows, as decide_lock_v1 leaves them
    w           record;            -- the rows, as decide_write_v1 leaves them
    v_at        tid[] := array_fill(NULL::tid, ARRAY[v_keys]);        -- by key: where the row is that is written
    v_wrote     boolean;           -- everything was written without locks before it; NULL: it was not tried
    v_needed    boolean[] := array_fill(true, ARRAY[v_keys]);         -- by key: this look reads it
    v_wanted    boolean[];                                            -- by key: a claim is about to charge it
    v_rows      boolean[] := array_fill(false, ARRAY[v_keys]);        -- by key: its row is locked
    v_room      bigint[];                                             -- by key: what may still be charged, in parts
    v_left      bigint[]  := array_fill(0::bigint, ARRAY[v_checks]);  -- by check: v_room before it
    v_fits      boolean[] := array_fill(false, ARRAY[v_checks]);      -- by check: its policy alone allows it
    v_pays      boolean[];  -- by claim: it is charged
    v_pends     boolean[];  -- by claim: what was decided stands only if its rows are locked and hold what was seen
    v_tells     boolean[];  -- by claim: this look decides it for good
    v_of        int[];      -- by part: its check, 0 when it is replayed
    v_tellings  int := 0;   -- how often parts were told: replays, then by each look
    v_first     int;        -- check of the claim in hand
    v_check     int;
    v_cell      int;
    v_ok        boolean;    -- no enforced policy denies the claim in hand
    v_waits     boolean;    -- it has a key that a claim before it charges
    v_open      boolean;    -- it has a key that cannot be decided
    v_held      boolean;    -- and that is because others hold its row
BEGIN
    PERFORM ration.decide_guard_v1(p_generation, p_operations, p_contents, p_stated, p_peeks, p_policies, p_keys, p_claims,
                                   p_cells, p_costs, p_priced, p_retention, p_hold);
    v_operating := array_remove(p_operations, NULL) <> '{}';
    o_now := ration.clock_v1(p_now);
    s := ration.decide_read_v1(p_shard, p_generation, p_policies, p_keys, v_needed, o_now);
    o_stale := NOT ration.ready_v1(s.o_places && ARRAY[1, 3, 5] /* the fast ones */, p_generation);
    IF o_stale THEN
        RETURN;
    END IF;
    o_status := array_fill(0, ARRAY[v_claims]);
    o_allowed := array_fill(false, ARRAY[v_claims]);
    o_at := array_fill(o_now, ARRAY[v_claims]);
    IF v_operating AND NOT ration.decide_new_v1(p_shard, p_operations) THEN
        SELECT r.o_status, r.o_allowed, r.o_at, r.o_claim, r.o_policy, r.o_version, r.o_admitted, r.o_remaining, r.o_retry_after,
               r.o_reset_after, r.o_slot, r.o_slot_expires, r.o_cost
        INTO o_status, o_allowed, o_at, o_claim, o_policy, o_version, o_admitted, o_remaining, o_retry_after, o_reset_after, o_slot,
             o_slot_expires, o_cost
        FROM ration.decide_replay_v1(p_shard, o_now, p_operations, p_contents, p_stated, p_claims, p_costs) AS r;
        v_of := array_fill(0, ARRAY[coalesce(cardinality(o_claim), 0)]);
        v_tellings := least(1, cardinality(v_of));
    END IF;

    LOOP
        v_room := s.o_room;
        v_wanted := array_fill(false, ARRAY[v_keys]);
        v_pays := array_fill(false, ARRAY[v_claims]);
        v_pends := v_pays;
        v_tells := v_pays;
        v_check := 1;
        FOR v_claim IN 1 .. v_claims LOOP
            v_first := v_check;
            IF o_status[v_claim] <> 0 THEN
                WHILE v_check <= v_checks AND p_claims[v_check] = v_claim LOOP
                    v_check := v_check + 1;
                END LOOP;
                CONTINUE;
            END IF;
            v_ok := true;
            v_waits := false;
            v_open := false;
            v_held := false;
            WHILE v_check <= v_checks AND p_claims[v_check] = v_claim LOOP
                v_cell := p_cells[v_check];
                v_left[v_check] := v_room[v_cell];
                v_fits[v_check] := CASE WHEN p_costs[v_check] <= s.o_capacities[v_cell]
                                        THEN v_room[v_cell] >= p_costs[v_check] * s.o_d[v_cell] ELSE false END;
                -- The usual check is through here with one look.
                IF (v_fits[v_check] AND NOT v_wanted[v_cell] AND (v_rows[v_cell] OR NOT v_locked)) IS NOT TRUE THEN
                    v_ok := v_ok AND (v_fits[v_check] OR NOT s.o_enforced[v_cell]);
                    v_waits := v_waits OR v_wanted[v_cell];
                    IF s.o_places[v_cell] IS NULL OR (v_locked AND NOT v_rows[v_cell] AND NOT p_peeks[v_claim]) THEN
                        v_open := true;
                        v_held := v_held OR (p_hold = 'skip' AND s.o_writers[v_cell] IS NOT NULL);
                    END IF;
                END IF;
                v_check := v_check + 1;
            END LOOP;
            IF v_first = v_check THEN
                o_status[v_claim] := 6;
                CONTINUE;
            ELSIF v_open THEN
                IF v_held THEN
                    o_status[v_claim] := 5;
                END IF;
                CONTINUE;
            END IF;
            o_status[v_claim] := 1;
            o_allowed[v_claim] := v_ok;
            o_at[v_claim] := o_now;
            v_pays[v_claim] := v_ok AND NOT p_peeks[v_claim];
            v_pends[v_claim] := (v_waits OR v_pays[v_claim]) AND NOT v_locked;
            v_tells[v_claim] := NOT v_pends[v_claim];
            CONTINUE WHEN p_peeks[v_claim] OR NOT (v_pends[v_claim] OR v_pays[v_claim]);
            FOR i IN v_first .. v_check - 1 LOOP
                v_cell := p_cells[i];
                v_wanted[v_cell] := NOT v_locked;
                IF v_pays[v_claim] AND v_fits[i] THEN
                    v_room[v_cell] := v_room[v_cell] - p_costs[i] * s.o_d[v_cell];
                END IF;
            END LOOP;
        END LOOP;
        IF v_check <= v_checks THEN
            RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'the claims of the checks do not ascend from 1 to the number of claims';
        END IF;

        v_stands := true;
        IF true = ANY (v_pends) THEN
            IF p_hold = 'try' AND array_position(s.o_rows, NULL) IS NULL THEN
                w := ration.decide_write_v1(o_now, s.o_rows, s.o_writers, s.o_places, s.o_versions, s.o_room, v_room, s.o_base,
                                            s.o_at, s.o_previous, s.o_marks, s.o_logs);
                v_wrote := w.o_all;
                IF NOT v_wrote AND w.o_cells IS NOT NULL THEN
                    -- What was written is taken back, whatever has changed meanwhile. The rest is not locked here: it would be
                    -- out of turn.
                    FOR i IN 1 .. cardinality(w.o_cells) LOOP
                        v_at[w.o_cells[i]] := w.o_rows[i];
                    END LOOP;
                    PERFORM ration.decide_write_v1(o_now, v_at, NULL, s.o_places, s.o_versions, s.o_room, s.o_room, s.o_base,
                                                   s.o_at, s.o_previous, s.o_marks, s.o_logs, true);
                END IF;
            ELSE
                l := ration.decide_lock_v1(p_shard, p_hold, v_wanted, s.o_places, p_policies, p_keys, s.o_writers);
                v_stands := l.o_same;
                v_locked := true;
            END IF;
            FOR i IN 1 .. v_claims LOOP
                CONTINUE WHEN NOT v_pends[i];
                IF v_wrote IS FALSE THEN
                    o_status[i] := 0;
                    o_allowed[i] := false;
                ELSE
                    v_tells[i] := v_stands;
                END IF;
            END LOOP;
        END IF;
        IF true = ANY (v_tells) THEN
            v_tellings := v_tellings + 1;
            SELECT v_of || array_agg(k.i), o_claim || array_agg(k.claim), o_policy || array_agg(p_policies[k.cell]),
                   o_version || array_agg(s.o_versions[k.cell]), o_admitted || array_agg(k.fits),
                   o_remaining || array_agg(greatest(0, f.remaining)),
                   o_retry_after || array_agg(CASE WHEN k.fits THEN 0 WHEN k.cost > k.capacity THEN -1
                                                   ELSE greatest(1, f.retry_after) END),
                   o_reset_after || array_agg(f.reset_after),
                   o_slot || array_agg(CASE WHEN k.charged > 0 AND k.place = 7 THEN gen_random_uuid() END),
                   o_slot_expires || array_agg(CASE WHEN k.charged > 0 AND k.place = 7 THEN k.mark END),
                   o_cost || array_agg(k.charged)
            INTO v_of, o_claim, o_policy, o_version, o_admitted, o_remaining, o_retry_after, o_reset_after, o_slot, o_slot_expires,
                 o_cost
            -- Each subscript once: the planner puts the function's arguments wherever it uses them.
            FROM (SELECT c.*, p_costs[c.i] AS cost, v_fits[c.i] AS fits, s.o_places[c.cell] AS place, s.o_n[c.cell] AS n,
                         s.o_capacities[c.cell] AS capacity, s.o_d[c.cell] AS d, s.o_spans[c.cell] AS span,
                         s.o_sliding[c.cell] AS sliding, s.o_base[c.cell] AS base, s.o_at[c.cell] AS at,
                         s.o_previous[c.cell] AS previous, s.o_marks[c.cell] AS mark, s.o_logs[c.cell] AS log, p_keys[c.cell] AS key,
                         CASE WHEN v_pays[c.claim] AND v_fits[c.i] THEN p_costs[c.i] ELSE 0 END AS charged,
                         (s.o_room[c.cell] - v_left[c.i]) / s.o_d[c.cell] AS before
                  FROM (SELECT i, p_claims[i] AS claim, p_cells[i] AS cell FROM generate_series(1, v_checks) AS i
                        WHERE v_tells[p_claims[i]] OFFSET 0) AS c OFFSET 0) AS k
            CROSS JOIN LATERAL ration.decide_figures_v1(
                o_now, k.place, CASE WHEN NOT k.fits AND k.cost <= k.capacity THEN k.cost END, k.capacity, k.before + k.charged, k.n, k.d,
                k.span, k.sliding, k.base, k.at, k.previous, k.mark, CASE WHEN k.place < 7 THEN k.log ELSE ROW (ration.slot_log_v1(
                    p_shard, k.key, o_now, k.base + k.before + k.cost - k.capacity))::ration.log_entries END) AS f;
        END IF;
        EXIT WHEN v_stands;

        FOREACH v_cell IN ARRAY coalesce(l.o_cells, '{}') LOOP
            v_rows[v_cell] := true;
        END LOOP;
        v_needed := array_fill(false, ARRAY[v_keys]);
        FOR i IN 1 .. v_checks LOOP
            IF v_pends[p_claims[i]] THEN
                v_needed[p_cells[i]] := true;
                o_status[p_claims[i]] := 0;
                o_allowed[p_claims[i]] := false;
            END IF;
        END LOOP;
        o_now := ration.clock_v1(p_now);
        s := ration.decide_read_v1(p_shard, p_generation, p_policies, p_keys, v_needed, o_now);
    END LOOP;

    IF v_tellings > 1 THEN
        -- Replays, the first and the second look were told one after the other.
        SELECT array_agg(p.of), array_agg(p.claim), array_agg(p.policy), array_agg(p.version), array_agg(p.admitted),
               array_agg(p.remaining), array_agg(p.retry_after), array_agg(p.reset_after), array_agg(p.slot), array_agg(p.slot_expires),
               array_agg(p.cost)
        INTO v_of, o_claim, o_policy, o_version, o_admitted, o_remaining, o_retry_after, o_reset_after, o_slot, o_slot_expires, o_cost
        FROM (SELECT * FROM unnest(v_of, o_claim, o_policy, o_version, o_admitted, o_remaining, o_retry_after, o_reset_after, o_slot,
                                   o_slot_expires, o_cost) WITH ORDINALITY
                       AS u (of, claim, policy, version, admitted, remaining, retry_after, reset_after, slot, slot_expires, cost, place)
              ORDER BY u.claim, u.place) AS p;
    END IF;
    IF v_wrote IS NULL AND true = ANY (v_pays) THEN
        v_at := s.o_rows;
        IF array_position(v_at, NULL) IS NOT NULL THEN
            FOR i IN 1 .. cardinality(l.o_cells) LOOP
                v_at[l.o_cells[i]] := l.o_rows[i];
            END LOOP;
        END IF;
        w := ration.decide_write_v1(o_now, v_at, NULL, s.o_places, s.o_versions, s.o_room, v_room, s.o_base, s.o_at,
                                    s.o_previous, s.o_marks, s.o_logs);
        IF NOT w.o_all THEN
            RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a key occurs twice';
        END IF;
        IF 7 = ANY (s.o_places) THEN
            INSERT INTO ration.slot (expires_at, ttl, cost, id, key, shard, policy)
            SELECT u.expires, s.o_spans[p_cells[u.of]], u.cost, u.slot, p_keys[p_cells[u.of]], p_shard, u.policy
            FROM unnest(v_of, o_policy, o_slot, o_slot_expires, o_cost) AS u (of, policy, slot, expires, cost)
            WHERE u.of > 0 AND u.slot IS NOT NULL;
        END IF;
    END IF;
    IF v_operating THEN
        INSERT INTO ration.operation (decided_at, expires_at, stated, price, key, content, shard, allowed, parts)
        SELECT o_at[c.claim], o_at[c.claim] + p_retention, p_stated[c.claim], c.price, p_operations[c.claim], p_contents[c.claim],
               p_shard, o_allowed[c.claim], c.parts
        FROM (SELECT u.claim, max(p_costs[u.of]) AS price,
                     array_agg(ROW (u.policy, u.version, p_keys[p_cells[u.of]], u.cost, p_priced[u.of], u.admitted, u.remaining,
                                    u.retry_after, u.reset_after, CASE WHEN u.cost > 0 THEN s.o_marks[p_cells[u.of]] END, u.slot,
                                    u.slot_expires)::ration.operation_part) AS parts
              FROM (SELECT * FROM unnest(v_of, o_claim, o_policy, o_version, o_admitted, o_remaining, o_retry_after, o_reset_after,
                                         o_slot, o_slot_expires, o_cost)
                             AS f (of, claim, policy, version, admitted, remaining, retry_after, reset_after, slot, slot_expires, cost)
                    WHERE f.of > 0 AND p_operations[f.claim] IS NOT NULL ORDER BY f.claim, f.of) AS u
              GROUP BY u.claim) AS c;
    END IF;
    IF v_operating OR (true = ANY (v_pays) AND s.o_places && ARRAY[2, 4, 6, 7] /* the logged ones */) THEN
        PERFORM ration.commit_durably_v1();
    END IF;
END $$;

-- put_policy_v1: installs a version of a policy, in one transaction with its audit row and the bump of the generation.
--
-- Arguments: p_expected is the version in force, 0 when the policy must not exist yet, or no more. p_content, n, d, capacity,
--        p_balances (NULL: keep) and p_start are those of install_version_v1; who asks, why, and the id of his request.
-- Answers: o_outcome created | changed | unchanged (the same content, and nothing begins anew: no new version) | conflict
--        (o_version is the one in force, 0 when there is none; nothing was changed) | restart (the members o_restarts say which
--        state the policy keeps, so that its balances could not be carried over: only p_balances restart does that; nothing
--        was changed) | needs-reset (the policy was deleted, and what it kept counts no more: only reset and restart say so;
--        nothing was changed) | overridden (a restart, and the overrides of the keys o_restarts are in its way; nothing was
--        changed); number, version, instant and generation of what is in force now.
-- Units: n in units per microsecond, d in units per token, capacity in tokens, instants in microseconds.
-- Clock: clock_timestamp(), read under the lock; the new version is never installed before the one it replaces.
-- Locks: the row of ration.policy_set, first: policy changes are one after the other. Decisions wait for none of this.
-- SQLSTATE: RN003 from clock_v1; RN005 and 23514 from install_version_v1.
CREATE OR REPLACE FUNCTION ration.put_policy_v1(
    p_id text, p_expected int, p_content json, p_n bigint, p_d bigint, p_capacity bigint, p_balances text, p_start text,
    p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL,
    OUT o_outcome text, OUT o_number int, OUT o_version int, OUT o_installed_at bigint, OUT o_generation bigint,
    OUT o_restarts text[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_before ration.policy_version;
    v_lives  boolean;  -- there is a version in force
BEGIN
    SELECT s.generation INTO o_generation FROM ration.policy_set AS s FOR UPDATE;
    SELECT v.* INTO v_before FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version) WHERE p.id = p_id;
    v_lives := FOUND AND NOT v_before.deleted;
    o_number := v_before.number;
    o_version := CASE WHEN v_lives THEN v_before.version ELSE 0 END;
    o_installed_at := v_before.installed_at;
    IF o_version IS DISTINCT FROM p_expected THEN
        o_outcome := 'conflict';
        RETURN;
    END IF;
    IF v_lives AND v_before.content::text = p_content::text AND (p_balances IN ('reset', 'restart')) IS NOT TRUE THEN
        o_outcome := 'unchanged';
        RETURN;
    END IF;
    IF v_before.version > 0 AND p_balances IS DISTINCT FROM 'restart' THEN
        SELECT array_agg(m.path) INTO o_restarts
        FROM unnest(ARRAY['per', 'ipPrefix', 'durability', 'scope', 'limit,algorithm', 'limit,windowSeconds', 'limit,strict']) AS m (path)
        -- As jsonb, in which 60 and 60.0 are one number.
        WHERE (v_before.content #> string_to_array(m.path, ','))::jsonb IS DISTINCT FROM (p_content #> string_to_array(m.path, ','))::jsonb;
        IF o_restarts IS NOT NULL THEN
            o_outcome := 'restart';
            RETURN;
        ELSIF NOT v_lives AND p_balances IS DISTINCT FROM 'reset' THEN
            o_outcome := 'needs-reset';
            RETURN;
        END IF;
    ELSIF v_lives AND p_balances = 'restart' THEN
        o_restarts := ration.hindering_overrides_v1(o_number, p_content);
        IF o_restarts IS NOT NULL THEN
            o_outcome := 'overridden';
            RETURN;
        END IF;
    END IF;

    o_outcome := CASE WHEN v_lives THEN 'changed' ELSE 'created' END;
    o_generation := o_generation + 1;
    SELECT i.o_number, i.o_version, i.o_installed_at INTO o_number, o_version, o_installed_at
    FROM ration.install_version_v1(p_id, p_content, p_n, p_d, p_capacity, coalesce(p_balances, 'keep'), p_start, false, NULL,
                                   o_generation, ration.clock_v1(p_now)) AS i;
    PERFORM ration.follow_overrides_v1(o_number, p_actor, p_role, p_reason, p_request_id, o_generation, o_installed_at);
    UPDATE ration.policy_set SET generation = o_generation;
    INSERT INTO ration.audit (at, actor, role, action, policy, version_before, version_after, before, after, reason, request_id)
    VALUES (o_installed_at, p_actor, p_role, 'policy.' || o_outcome, p_id, v_before.version, o_version, v_before.content, p_content,
            p_reason, p_request_id);
    PERFORM pg_notify('ration_policy', o_generation::text);
END $$;

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

-- settling_v1: the parts of an operation whose charge a settlement replaces, each with its policy in force: those charged
-- by the request's own cost, but for slots, which are released instead. What was charged before what the policy keeps began
-- anew, or was deleted, has none.
--
-- Answers: part, its number among p_parts from 1; place, see state_place_v1; its key, cost and mark; the policy's figures.
-- Units: tokens, microseconds, units of 1/d token. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.settling_v1(p_parts ration.operation_part[])
RETURNS TABLE (part int, place int, key uuid, cost bigint, mark bigint, policy int, version int, n bigint, d bigint,
               capacity bigint, capacity_units bigint, idle_balance bigint, idle_at bigint, span bigint, sliding boolean)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT e.part::int, ration.state_place_v1(p.algorithm, p.strict, p.durability), e.key, e.cost, e.mark, p.number, p.version, p.n, p.d,
           p.capacity, p.capacity_units, p.idle_balance, p.idle_at, p.span, p.algorithm = 'sliding_window_counter'
    FROM unnest(p_parts) WITH ORDINALITY AS e (policy, version, key, cost, priced, admitted, remaining, retry_after, reset_after,
                                               mark, slot, slot_expires_at, part)
    JOIN ration.policy AS p ON p.number = e.policy
    WHERE e.priced AND e.cost > 0 AND e.slot IS NULL AND e.version >= p.since;
END;

-- settle_buckets_v1: the token buckets of a settlement: each is brought to now under the version in force and given back
-- what was charged, less what it came to cost; it never holds more than its capacity, nor owes more.
--
-- Arguments: p_parts as settling_v1; the actual cost; the instant of the settlement.
-- Answers: the numbers of the parts that were applied, all of them, and of those whose extra charge was cut.
-- Units: tokens, microseconds. Clock: none, the instant is given.
-- Locks: the caller has locked the rows, and pins the plans. SQLSTATE: none: what may exceed 64 bits is numeric.
CREATE OR REPLACE FUNCTION ration.settle_buckets_v1(
    p_shard int, p_parts ration.operation_part[], p_actual bigint, p_now bigint, OUT o_applied int[], OUT o_clamped int[])
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_policies int[];     -- of the rows of older versions,
    v_before   int[];     -- the version before and
    v_versions int[];     -- the version now,
    v_cut      boolean[]; -- and whether a change cut the balance
BEGIN
    WITH owed AS (
        SELECT s.part, s.place, s.key, s.policy, s.version, s.capacity_units, greatest(held.at, p_now) AS at,
               b.version AS before, carried.o_clamped AS cut,
               ration.settled_v1(held.balance, held.at, p_now, s.n, s.capacity_units) + (s.cost - p_actual)::numeric * s.d AS balance
        FROM ration.settling_v1(p_parts) AS s
        CROSS JOIN LATERAL (
            SELECT f.version, f.balance, f.at FROM ration.bucket_fast AS f
            WHERE s.place = 1 AND f.shard = p_shard AND f.key = s.key
            UNION ALL SELECT f.version, f.balance, f.at FROM ration.bucket_durable AS f
            WHERE s.place = 2 AND f.shard = p_shard AND f.key = s.key OFFSET 0) AS b
        LEFT JOIN LATERAL (SELECT c.o_balance, c.o_at, c.o_clamped FROM ration.carry_v1(s.policy, b.version, s.version, b.balance, b.at) AS c
                           WHERE b.version < s.version OFFSET 0) AS carried ON true  -- not called for rows in force
        CROSS JOIN LATERAL (SELECT coalesce(carried.o_balance, b.balance) AS balance, coalesce(carried.o_at, b.at) AS at) AS held
    ), outcome AS (
        SELECT o.part, o.place, p_shard AS shard, o.key, o.policy, o.before, o.version, o.cut, o.at,
               o.balance < -o.capacity_units AS clamped,
               ration.clamped_v1(o.balance, o.capacity_units) AS balance
        FROM owed AS o
    ), fast AS (
        UPDATE ration.bucket_fast AS b SET balance = o.balance, at = o.at, version = o.version
        FROM outcome AS o WHERE o.place = 1 AND b.shard = ANY (ARRAY[o.shard]) AND b.key = o.key
    ), durable AS (
        UPDATE ration.bucket_durable AS b SET balance = o.balance, at = o.at, version = o.version
        FROM outcome AS o WHERE o.place = 2 AND b.shard = ANY (ARRAY[o.shard]) AND b.key = o.key
    )
    SELECT array_agg(o.part), array_agg(o.part) FILTER (WHERE o.clamped),
           array_agg(o.policy) FILTER (WHERE o.before < o.version), array_agg(o.before) FILTER (WHERE o.before < o.version),
           array_agg(o.version) FILTER (WHERE o.before < o.version), array_agg(o.cut) FILTER (WHERE o.before < o.version)
    INTO o_applied, o_clamped, v_policies, v_before, v_versions, v_cut
    FROM outcome AS o;
    IF v_policies IS NOT NULL THEN
        PERFORM ration.append_carried_v1(v_policies, v_before, v_versions, v_cut);
    END IF;
END $$;

-- Code generated from take_new_v1.sql by internal/gen/durable. DO NOT EDIT.
--
-- take_new_durable_v1: the settling path: decides what take_durable_v1 answered `again`: rows that are absent, of an older version, or
-- contended. Absent keys are inserted first, charged already: an absent bucket is an idle bucket, and whoever inserts its
-- row decides. Then all other rows are locked ascending, read anew and decided.
--
-- Arguments: as take_durable_v1, and p_hold, what to do about rows that other sessions hold:
--        'wait'   waits for them, until statement_timeout;
--        'skip'   leaves them out and inserts nothing (an uncommitted insert of another session cannot be skipped);
--        'alone'  one element only: waits, but only if no other call waits so for this key.
-- Answers: as take_durable_v1; under 'skip', o_admitted is -1 where another session holds the row. An element that is missing
--        from the arrays was not decided: absent ('skip'), another call waits for its key ('alone'), or deleted by the
--        cleaner meanwhile (ask again). Neither was charged.
-- Units: costs and remaining in tokens, waits in microseconds from o_now.
-- Clock: clock_timestamp() before the INSERT, which decides new keys, and after the locks, which is o_now and decides the
--        rest; p_now instead of both, where the database is marked as a test clock.
-- Locks: 'alone': the transaction's advisory lock on the key's first 64 bits; then bucket rows, ascending by key. A
--        peek locks nothing.
-- SQLSTATE: RN001 RN002 RN004 from guard_v1, RN003 from clock_v1; RN004 p_hold is another, 'alone' with several elements, or
--        a key occurs twice; 57014 statement_timeout, with nothing charged.
CREATE OR REPLACE FUNCTION ration.take_new_durable_v1(
    p_shard int, p_generation bigint, p_policies int[], p_keys uuid[], p_costs bigint[], p_counts int[],
    p_hold text DEFAULT 'wait', p_now bigint DEFAULT NULL,
    OUT o_stale boolean, OUT o_now bigint, OUT o_element int[], OUT o_admitted int[],
    OUT o_remaining bigint[], OUT o_retry_after bigint[], OUT o_reset_after bigint[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Pinned plans, and why shard is looked for as an array and behind OFFSET 0: see take_durable_v1.
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $$
DECLARE
    v_locked      int[];  -- elements whose rows this call has locked: only these may be charged
    v_xmin        xid;    -- with v_cmin: the INSERT of this call, by which its rows are told from those of earlier calls of the
    v_cmin        cid;    -- same transaction
    v_inserted_at bigint; -- the instant at which it decided
    v_policies    int[];     -- of the rows of older versions that were charged,
    v_before      int[];     -- the version before and
    v_versions    int[];     -- the version now,
    v_clamped     boolean[]; -- and whether a change cut the balance
BEGIN
    o_stale := NOT ration.guard_v1(false, p_generation, p_policies, p_keys, p_costs, p_counts);
    IF o_stale THEN
        RETURN;
    END IF;
    IF p_hold = 'alone' THEN
        IF cardinality(p_keys) <> 1 THEN
            RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a call that waits alone takes one element';
        END IF;
        IF NOT pg_try_advisory_xact_lock(ration.advisory_key_v1(p_keys[1])) THEN
            o_now := ration.clock_v1(p_now);
            RETURN;
        END IF;
    ELSIF (p_hold IN ('wait', 'skip')) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'p_hold is one of wait, skip, alone';
    END IF;
    IF (SELECT count(DISTINCT e.key) FROM unnest(p_keys) AS e (key)) <> cardinality(p_keys) THEN
        -- Both would be decided by what the row held before either.
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'the keys of a call are distinct';
    END IF;
    PERFORM ration.commit_lazily_v1();  -- what a sweep is told is logged
    PERFORM ration.commit_durably_v1();

    IF p_hold <> 'skip' THEN
        v_inserted_at := ration.clock_v1(p_now);
        -- Only keys that their idle bucket would admit: a denial writes nothing.
        WITH made AS (
            INSERT INTO ration.bucket_durable (balance, at, key, shard, policy, version, took)
            SELECT idle.settled - idle.admitted * idle.need, greatest(idle.at, v_inserted_at), e.key, p_shard, e.policy, idle.version,
                   idle.admitted
            FROM unnest(p_policies, p_keys, p_costs, p_counts) AS e (policy, key, cost, count)
            CROSS JOIN LATERAL (
                SELECT i.version, i.at, i.settled, i.need, least(e.count, i.settled / i.need) AS admitted
                FROM (SELECT p.version, p.idle_at AS at, CASE WHEN e.cost <= p.capacity THEN e.cost * p.d END AS need,
                             ration.settled_v1(p.idle_balance, p.idle_at, v_inserted_at, p.n, p.capacity_units) AS settled
                      FROM ration.policy AS p WHERE p.number = e.policy AND p.generation <= p_generation OFFSET 0) AS i
                OFFSET 0) AS idle
            WHERE e.count > 0 AND idle.settled >= idle.need
            ORDER BY e.key
            ON CONFLICT DO NOTHING
            RETURNING xmin, cmin)
        SELECT m.xmin, m.cmin INTO v_xmin, v_cmin FROM made AS m LIMIT 1;
        -- A subquery with a lock of its own cannot be flattened: the sorted elements drive it, so rows are locked ascending.
        SELECT array_agg(q.element::int) INTO v_locked
        FROM (SELECT e.element, e.key FROM unnest(p_keys) WITH ORDINALITY AS e (key, element)
              WHERE p_counts[e.element] > 0 ORDER BY e.key) AS q
        CROSS JOIN LATERAL (SELECT FROM ration.bucket_durable AS b
                            WHERE b.shard = p_shard AND b.key = q.key AND (b.xmin = v_xmin AND b.cmin = v_cmin) IS NOT TRUE
                            FOR NO KEY UPDATE) AS held;
    ELSE
        SELECT array_agg(q.element::int) INTO v_locked
        FROM (SELECT e.element, e.key FROM unnest(p_keys) WITH ORDINALITY AS e (key, element)
              WHERE p_counts[e.element] > 0 ORDER BY e.key) AS q
        CROSS JOIN LATERAL (SELECT FROM ration.bucket_durable AS b WHERE b.shard = p_shard AND b.key = q.key
                            FOR NO KEY UPDATE SKIP LOCKED) AS held;
    END IF;
    o_now := ration.clock_v1(p_now);

    -- A new statement sees every row as the lock holders before us left it.
    WITH state AS (
        SELECT e.element::int, e.key, e.policy, p.version, p.d, p.n, p.capacity_units, held.at, held.settled, need.units AS need,
               known.own, known.instant, b.version AS before, carried.o_clamped AS clamped,
               CASE WHEN mine.held THEN -1
                    WHEN known.own THEN b.took
                    WHEN need.units <= held.settled THEN least(e.count, held.settled / need.units)
                    ELSE 0 END AS admitted
        FROM unnest(p_policies, p_keys, p_costs, p_counts) WITH ORDINALITY AS e (policy, key, cost, count, element)
        CROSS JOIN LATERAL (SELECT f.* FROM ration.policy AS f
                            WHERE f.number = e.policy AND f.generation <= p_generation OFFSET 0) AS p
        LEFT JOIN LATERAL (SELECT f.key, f.version, f.balance, f.at,
                                  f.took, (f.xmin = v_xmin AND f.cmin = v_cmin) IS TRUE AS own
                           FROM ration.bucket_durable AS f
                           WHERE f.shard = p_shard AND f.key = e.key OFFSET 0) AS b ON true
        LEFT JOIN LATERAL (SELECT c.o_balance, c.o_at, c.o_clamped FROM ration.carry_v1(p.number, b.version, p.version, b.balance, b.at) AS c
                           WHERE b.version < p.version OFFSET 0) AS carried ON true  -- not called for rows in force
        CROSS JOIN LATERAL (SELECT coalesce(carried.o_balance, b.balance, p.idle_balance) AS balance,
                                   coalesce(carried.o_at, b.at, p.idle_at) AS at) AS stored
        -- What this call inserted was decided at the instant of the INSERT, and its figures are those of that instant.
        CROSS JOIN LATERAL (SELECT coalesce(b.own, false) AS own, CASE WHEN b.own THEN v_inserted_at ELSE o_now END AS instant) AS known
        CROSS JOIN LATERAL (SELECT stored.at,
                                   ration.settled_v1(stored.balance, stored.at, known.instant, p.n, p.capacity_units) AS settled
                           ) AS held
        CROSS JOIN LATERAL (SELECT CASE WHEN e.cost <= p.capacity THEN e.cost * p.d END AS units) AS need
        -- Without the lock only what cannot be charged is answered: a peek, never, or a denial by the idle bucket.
        CROSS JOIN LATERAL (SELECT known.own OR e.element = ANY (v_locked) OR e.count = 0 OR need.units IS NULL
                                   OR (b.key IS NULL AND held.settled < need.units) AS answerable) AS free
        CROSS JOIN LATERAL (SELECT p_hold = 'skip' AND b.key IS NOT NULL AND free.answerable IS NOT TRUE AS held) AS mine
        WHERE free.answerable OR mine.held
    ), outcome AS (
        SELECT s.element, p_shard AS shard, s.key, s.policy, s.version, s.own, s.instant, s.admitted, greatest(s.at, s.instant) AS at,
               s.before, s.clamped, s.admitted > 0 AND s.before < s.version AS carried,
               s.settled - CASE WHEN s.own OR s.need IS NULL THEN 0 ELSE greatest(0, s.admitted) * s.need END AS balance,
               s.need, s.d, s.n, s.capacity_units
        FROM state AS s
    ), taken AS (
        UPDATE ration.bucket_durable AS b
        SET balance = o.balance, at = o.at, version = o.version, took = o.admitted
        FROM outcome AS o
        WHERE b.shard = ANY (ARRAY[o.shard]) AND b.key = o.key AND o.admitted > 0 AND NOT o.own
    )
    SELECT array_agg(o.element), array_agg(o.admitted), array_agg(greatest(0, o.balance / o.d)),
           array_agg(CASE WHEN o.need IS NULL THEN -1 ELSE ration.wait_v1(o.need - o.balance, o.n, o.at - o.instant) END),
           array_agg(ration.wait_v1(o.capacity_units - o.balance, o.n, o.at - o.instant)),
           array_agg(o.policy) FILTER (WHERE o.carried), array_agg(o.before) FILTER (WHERE o.carried),
           array_agg(o.version) FILTER (WHERE o.carried), array_agg(o.clamped) FILTER (WHERE o.carried)
    INTO o_element, o_admitted, o_remaining, o_retry_after, o_reset_after, v_policies, v_before, v_versions, v_clamped
    FROM outcome AS o;
    IF v_policies IS NOT NULL THEN
        PERFORM ration.append_carried_v1(v_policies, v_before, v_versions, v_clamped);
    END IF;
END $$;

-- take_new_v1: the settling path: decides what take_v1 answered `again`: rows that are absent, of an older version, or
-- contended. Absent keys are inserted first, charged already: an absent bucket is an idle bucket, and whoever inserts its
-- row decides. Then all other rows are locked ascending, read anew and decided.
--
-- Arguments: as take_v1, and p_hold, what to do about rows that other sessions hold:
--        'wait'   waits for them, until statement_timeout;
--        'skip'   leaves them out and inserts nothing (an uncommitted insert of another session cannot be skipped);
--        'alone'  one element only: waits, but only if no other call waits so for this key.
-- Answers: as take_v1; under 'skip', o_admitted is -1 where another session holds the row. An element that is missing
--        from the arrays was not decided: absent ('skip'), another call waits for its key ('alone'), or deleted by the
--        cleaner meanwhile (ask again). Neither was charged.
-- Units: costs and remaining in tokens, waits in microseconds from o_now.
-- Clock: clock_timestamp() before the INSERT, which decides new keys, and after the locks, which is o_now and decides the
--        rest; p_now instead of both, where the database is marked as a test clock.
-- Locks: 'alone': the transaction's advisory lock on the key's first 64 bits; then bucket rows, ascending by key. A
--        peek locks nothing.
-- SQLSTATE: RN001 RN002 RN004 from guard_v1, RN003 from clock_v1; RN004 p_hold is another, 'alone' with several elements, or
--        a key occurs twice; 57014 statement_timeout, with nothing charged.
CREATE OR REPLACE FUNCTION ration.take_new_v1(
    p_shard int, p_generation bigint, p_policies int[], p_keys uuid[], p_costs bigint[], p_counts int[],
    p_hold text DEFAULT 'wait', p_now bigint DEFAULT NULL,
    OUT o_stale boolean, OUT o_now bigint, OUT o_element int[], OUT o_admitted int[],
    OUT o_remaining bigint[], OUT o_retry_after bigint[], OUT o_reset_after bigint[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Pinned plans, and why shard is looked for as an array and behind OFFSET 0: see take_v1.
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $$
DECLARE
    v_locked      int[];  -- elements whose rows this call has locked: only these may be charged
    v_xmin        xid;    -- with v_cmin: the INSERT of this call, by which its rows are told from those of earlier calls of the
    v_cmin        cid;    -- same transaction
    v_inserted_at bigint; -- the instant at which it decided
    v_policies    int[];     -- of the rows of older versions that were charged,
    v_before      int[];     -- the version before and
    v_versions    int[];     -- the version now,
    v_clamped     boolean[]; -- and whether a change cut the balance
BEGIN
    o_stale := NOT ration.guard_v1(true, p_generation, p_policies, p_keys, p_costs, p_counts);
    IF o_stale THEN
        RETURN;
    END IF;
    IF p_hold = 'alone' THEN
        IF cardinality(p_keys) <> 1 THEN
            RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a call that waits alone takes one element';
        END IF;
        IF NOT pg_try_advisory_xact_lock(ration.advisory_key_v1(p_keys[1])) THEN
            o_now := ration.clock_v1(p_now);
            RETURN;
        END IF;
    ELSIF (p_hold IN ('wait', 'skip')) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'p_hold is one of wait, skip, alone';
    END IF;
    IF (SELECT count(DISTINCT e.key) FROM unnest(p_keys) AS e (key)) <> cardinality(p_keys) THEN
        -- Both would be decided by what the row held before either.
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'the keys of a call are distinct';
    END IF;
    PERFORM ration.commit_lazily_v1();  -- what a sweep is told is logged
    -- durable: PERFORM ration.commit_durably_v1();

    IF p_hold <> 'skip' THEN
        v_inserted_at := ration.clock_v1(p_now);
        -- Only keys that their idle bucket would admit: a denial writes nothing.
        WITH made AS (
            INSERT INTO ration.bucket_fast (balance, at, key, shard, policy, version, took)
            SELECT idle.settled - idle.admitted * idle.need, greatest(idle.at, v_inserted_at), e.key, p_shard, e.policy, idle.version,
                   idle.admitted
            FROM unnest(p_policies, p_keys, p_costs, p_counts) AS e (policy, key, cost, count)
            CROSS JOIN LATERAL (
                SELECT i.version, i.at, i.settled, i.need, least(e.count, i.settled / i.need) AS admitted
                FROM (SELECT p.version, p.idle_at AS at, CASE WHEN e.cost <= p.capacity THEN e.cost * p.d END AS need,
                             ration.settled_v1(p.idle_balance, p.idle_at, v_inserted_at, p.n, p.capacity_units) AS settled
                      FROM ration.policy AS p WHERE p.number = e.policy AND p.generation <= p_generation OFFSET 0) AS i
                OFFSET 0) AS idle
            WHERE e.count > 0 AND idle.settled >= idle.need
            ORDER BY e.key
            ON CONFLICT DO NOTHING
            RETURNING xmin, cmin)
        SELECT m.xmin, m.cmin INTO v_xmin, v_cmin FROM made AS m LIMIT 1;
        -- A subquery with a lock of its own cannot be flattened: the sorted elements drive it, so rows are locked ascending.
        SELECT array_agg(q.element::int) INTO v_locked
        FROM (SELECT e.element, e.key FROM unnest(p_keys) WITH ORDINALITY AS e (key, element)
              WHERE p_counts[e.element] > 0 ORDER BY e.key) AS q
        CROSS JOIN LATERAL (SELECT FROM ration.bucket_fast AS b
                            WHERE b.shard = p_shard AND b.key = q.key AND (b.xmin = v_xmin AND b.cmin = v_cmin) IS NOT TRUE
                            FOR NO KEY UPDATE) AS held;
    ELSE
        SELECT array_agg(q.element::int) INTO v_locked
        FROM (SELECT e.element, e.key FROM unnest(p_keys) WITH ORDINALITY AS e (key, element)
              WHERE p_counts[e.element] > 0 ORDER BY e.key) AS q
        CROSS JOIN LATERAL (SELECT FROM ration.bucket_fast AS b WHERE b.shard = p_shard AND b.key = q.key
                            FOR NO KEY UPDATE SKIP LOCKED) AS held;
    END IF;
    o_now := ration.clock_v1(p_now);

    -- A new statement sees every row as the lock holders before us left it.
    WITH state AS (
        SELECT e.element::int, e.key, e.policy, p.version, p.d, p.n, p.capacity_units, held.at, held.settled, need.units AS need,
               known.own, known.instant, b.version AS before, carried.o_clamped AS clamped,
               CASE WHEN mine.held THEN -1
                    WHEN known.own THEN b.took
                    WHEN need.units <= held.settled THEN least(e.count, held.settled / need.units)
                    ELSE 0 END AS admitted
        FROM unnest(p_policies, p_keys, p_costs, p_counts) WITH ORDINALITY AS e (policy, key, cost, count, element)
        CROSS JOIN LATERAL (SELECT f.* FROM ration.policy AS f
                            WHERE f.number = e.policy AND f.generation <= p_generation OFFSET 0) AS p
        LEFT JOIN LATERAL (SELECT f.key, f.version, f.balance, f.at,
                                  f.took, (f.xmin = v_xmin AND f.cmin = v_cmin) IS TRUE AS own
                           FROM ration.bucket_fast AS f
                           WHERE f.shard = p_shard AND f.key = e.key OFFSET 0) AS b ON true
        LEFT JOIN LATERAL (SELECT c.o_balance, c.o_at, c.o_clamped FROM ration.carry_v1(p.number, b.version, p.version, b.balance, b.at) AS c
                           WHERE b.version < p.version OFFSET 0) AS carried ON true  -- not called for rows in force
        CROSS JOIN LATERAL (SELECT coalesce(carried.o_balance, b.balance, p.idle_balance) AS balance,
                                   coalesce(carried.o_at, b.at, p.idle_at) AS at) AS stored
        -- What this call inserted was decided at the instant of the INSERT, and its figures are those of that instant.
        CROSS JOIN LATERAL (SELECT coalesce(b.own, false) AS own, CASE WHEN b.own THEN v_inserted_at ELSE o_now END AS instant) AS known
        CROSS JOIN LATERAL (SELECT stored.at,
                                   ration.settled_v1(stored.balance, stored.at, known.instant, p.n, p.capacity_units) AS settled
                           ) AS held
        CROSS JOIN LATERAL (SELECT CASE WHEN e.cost <= p.capacity THEN e.cost * p.d END AS units) AS need
        -- Without the lock only what cannot be charged is answered: a peek, never, or a denial by the idle bucket.
        CROSS JOIN LATERAL (SELECT known.own OR e.element = ANY (v_locked) OR e.count = 0 OR need.units IS NULL
                                   OR (b.key IS NULL AND held.settled < need.units) AS answerable) AS free
        CROSS JOIN LATERAL (SELECT p_hold = 'skip' AND b.key IS NOT NULL AND free.answerable IS NOT TRUE AS held) AS mine
        WHERE free.answerable OR mine.held
    ), outcome AS (
        SELECT s.element, p_shard AS shard, s.key, s.policy, s.version, s.own, s.instant, s.admitted, greatest(s.at, s.instant) AS at,
               s.before, s.clamped, s.admitted > 0 AND s.before < s.version AS carried,
               s.settled - CASE WHEN s.own OR s.need IS NULL THEN 0 ELSE greatest(0, s.admitted) * s.need END AS balance,
               s.need, s.d, s.n, s.capacity_units
        FROM state AS s
    ), taken AS (
        UPDATE ration.bucket_fast AS b
        SET balance = o.balance, at = o.at, version = o.version, took = o.admitted
        FROM outcome AS o
        WHERE b.shard = ANY (ARRAY[o.shard]) AND b.key = o.key AND o.admitted > 0 AND NOT o.own
    )
    SELECT array_agg(o.element), array_agg(o.admitted), array_agg(greatest(0, o.balance / o.d)),
           array_agg(CASE WHEN o.need IS NULL THEN -1 ELSE ration.wait_v1(o.need - o.balance, o.n, o.at - o.instant) END),
           array_agg(ration.wait_v1(o.capacity_units - o.balance, o.n, o.at - o.instant)),
           array_agg(o.policy) FILTER (WHERE o.carried), array_agg(o.before) FILTER (WHERE o.carried),
           array_agg(o.version) FILTER (WHERE o.carried), array_agg(o.clamped) FILTER (WHERE o.carried)
    INTO o_element, o_admitted, o_remaining, o_retry_after, o_reset_after, v_policies, v_before, v_versions, v_clamped
    FROM outcome AS o;
    IF v_policies IS NOT NULL THEN
        PERFORM ration.append_carried_v1(v_policies, v_before, v_versions, v_clamped);
    END IF;
END $$;

-- balance_at_v1: what a stored balance is at an instant under the version in force now: carried over every change since
-- its own version, then settled. For looks at the state; decisions do the same under their locks.
--
-- Units: the answer in units of 1/d token of the version in force, instants in microseconds.
-- Clock: none, the instant is given. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.balance_at_v1(p_policy int, p_version int, p_balance bigint, p_at bigint, p_now bigint)
RETURNS bigint LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT ration.settled_v1(c.o_balance, c.o_at, p_now, p.n, p.capacity_units)
    FROM ration.policy AS p
    CROSS JOIN LATERAL ration.carry_v1(p.number, p_version, p.version, p_balance, p_at) AS c
    WHERE p.number = p_policy;
END;

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

-- bucket_now: every stored bucket as it is at this instant: the whole tokens it holds and when it is full. For people;
-- it reads without locks. A key that is not listed is an idle bucket. Find a caller's row by
-- key = ration.bucket_key(policy, attributes).
CREATE OR REPLACE VIEW ration.bucket_now AS
SELECT p.id::text AS policy, b.key, b.shard, p.durability, b.version AS settled_version, p.version AS policy_version,
       greatest(0, held.balance / p.d) AS tokens, p.capacity,
       ration.instant_v1(clock.now, ration.wait_v1(p.capacity_units - held.balance, p.n, b.at - clock.now)) AS full_at
FROM (SELECT f.shard, f.key, f.policy, f.version, f.balance, f.at FROM ration.bucket_fast AS f
      UNION ALL
      SELECT d.shard, d.key, d.policy, d.version, d.balance, d.at FROM ration.bucket_durable AS d) AS b
JOIN ration.policy AS p ON p.number = b.policy AND b.version >= p.since  -- what came before counts no more
CROSS JOIN (SELECT ration.clock_v1() AS now) AS clock
CROSS JOIN LATERAL (SELECT ration.balance_at_v1(b.policy, b.version, b.balance, b.at, clock.now) AS balance) AS held;

-- log_now: every stored key of sliding window logs and strict sliding window counters as it is at this instant: what is used
-- of its limit and when nothing is any more. For people; it reads without locks. A key that is not listed is idle.
CREATE OR REPLACE VIEW ration.log_now AS
SELECT p.id::text AS policy, l.key, l.shard, p.durability, p.version AS policy_version, p.capacity - f.remaining AS used, p.capacity,
       ration.instant_v1(clock.now, f.reset_after) AS full_at
FROM (SELECT f.shard, f.key, f.policy, f.version, f.entries FROM ration.log_fast AS f
      UNION ALL
      SELECT d.shard, d.key, d.policy, d.version, d.entries FROM ration.log_durable AS d) AS l
JOIN ration.policy AS p ON p.number = l.policy AND l.version >= p.since  -- what came before counts no more
CROSS JOIN (SELECT ration.clock_v1() AS now) AS clock
CROSS JOIN LATERAL ration.log_live_v1(l.entries, clock.now - p.span) AS held
CROSS JOIN LATERAL (SELECT held.o_live[cardinality(held.o_live) - 1] AS at) AS newest
CROSS JOIN LATERAL ration.decide_figures_v1(
    clock.now, 5 /* state_place_v1 */, NULL, p.capacity, 0, p.n, p.d, p.span, false,
    held.o_used, newest.at, 0, newest.at, ROW (held.o_live)::ration.log_entries) AS f;

-- window_now: every stored key of fixed windows and sliding window counters as it is at this instant: what is used of its
-- limit and when nothing is any more. For people; it reads without locks. A key that is not listed is idle. Logs, and strict
-- counters, are in log_now.
CREATE OR REPLACE VIEW ration.window_now AS
SELECT p.id::text AS policy, w.key, w.shard, p.durability, p.version AS policy_version, p.capacity - f.remaining AS used, p.capacity,
       ration.instant_v1(clock.now, f.reset_after) AS full_at
FROM (SELECT f.shard, f.key, f.policy, f.version, f.start, f.current, f.previous FROM ration.window_fast AS f
      UNION ALL
      SELECT d.shard, d.key, d.policy, d.version, d.start, d.current, d.previous FROM ration.window_durable AS d) AS w
JOIN ration.policy AS p ON p.number = w.policy AND w.version >= p.since  -- what came before counts no more
CROSS JOIN (SELECT ration.clock_v1() AS now) AS clock
CROSS JOIN LATERAL ration.window_at_v1(w.start, w.current, w.previous, p.span, clock.now) AS held
CROSS JOIN LATERAL ration.decide_figures_v1(
    clock.now, 3 /* state_place_v1 */, NULL, p.capacity, 0, p.n, p.d, p.span,
    p.algorithm = 'sliding_window_counter', held.current, held.start, held.previous, held.start, NULL) AS f;

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
    ration.fold_case_v1, ration.settled_v1, ration.wait_v1, ration.clock_v1, ration.carry_v1, ration.converted_v1, ration.clamped_v1,
    ration.floor_div_v1, ration.balance_at_v1, ration.window_start_v1, ration.window_at_v1, ration.window_room_v1,
    ration.window_wait_v1, ration.log_live_v1, ration.log_wait_v1, ration.decide_figures_v1, ration.instant_v1
    TO ration_service, ration_operator, ration_reader;

GRANT EXECUTE ON FUNCTION ration.clean_v1, ration.clean_windows_v1, ration.clean_logs_v1, ration.clean_slots_v1,
    ration.clean_slot_parents_v1, ration.clean_operations_v1, ration.sweep_v1, ration.recover_v1
    TO ration_service, ration_operator;
GRANT EXECUTE ON FUNCTION ration.take_v1, ration.take_durable_v1, ration.take_new_v1, ration.take_new_durable_v1,
    ration.decide_v1, ration.settle_v1, ration.release_slot_v1, ration.renew_slot_v1, ration.put_policy_v1, ration.dry_run_v1,
    ration.delete_policy_v1, ration.put_override_v1, ration.remove_override_v1, ration.put_kill_switch_v1,
    ration.remove_kill_switch_v1
    TO ration_service;
GRANT EXECUTE ON FUNCTION ration.expire_v1 TO ration_service, ration_operator;

-- The audit is written by the functions above alone, with their owner's rights; everybody may check it.
GRANT SELECT ON ration.audit_head TO ration_service, ration_operator, ration_reader;
GRANT EXECUTE ON FUNCTION ration.audit_hash_v1, ration.audit_verify_v1 TO ration_service, ration_operator, ration_reader;

-- Instances tell of themselves, and of what shadows saw. Whom a shadow would have denied names accounts: no reader sees it.
GRANT EXECUTE ON FUNCTION ration.confirm_v1, ration.leave_v1, ration.report_shadow_v1 TO ration_service;
GRANT EXECUTE ON FUNCTION ration.clean_instances_v1, ration.clean_shadow_v1 TO ration_service, ration_operator;
GRANT EXECUTE ON FUNCTION ration.instances_v1 TO ration_service, ration_operator, ration_reader;
GRANT SELECT ON ration.shadow_total, ration.shadow_denial TO ration_service, ration_operator;

-- Keys are looked at and set by hand over HTTP, where it is known who asks.
GRANT SELECT ON ration.override, ration.kill_switch TO ration_service;
GRANT EXECUTE ON FUNCTION ration.locate_key_v1, ration.policy_keys_v1, ration.key_figures_v1, ration.reset_bucket_v1, ration.rebase_v1
    TO ration_service;

-- Who holds ration_service can see who may call, not make callers. People on duty see no hash, and can shut a door, not open one.
GRANT SELECT ON ration.token TO ration_service;
GRANT SELECT (id, name, role, scope, created_at, created_by, expires_at, revoked_at) ON ration.token TO ration_operator;
GRANT EXECUTE ON FUNCTION ration.revoke_token_v1 TO ration_operator;
