-- The words of the scripts. Everything happens a second after the policy's installation, but where a step says otherwise;
-- tokens come back within years only. A key, and an operation id, is a letter up to f; 'a' and 'A' are two keys of the same
-- first 64 bits. A table is that of script.durability.

-- Who waits is what the scripts are about: here it is for as long as the other holds.
ALTER FUNCTION ration.settle_v1 RESET lock_timeout;
ALTER FUNCTION ration.release_slot_v1 RESET lock_timeout;
ALTER FUNCTION ration.renew_slot_v1 RESET lock_timeout;

CREATE FUNCTION empty() RETURNS void LANGUAGE sql AS $$
    TRUNCATE ration.policy, ration.policy_version, ration.bucket_fast, ration.bucket_durable, ration.window_fast, ration.window_durable,
             ration.log_fast, ration.log_durable, ration.slot_parent, ration.slot, ration.operation, ration.state_loss,
             ration.override, ration.sweep RESTART IDENTITY;
    UPDATE ration.policy_set SET generation = 1;
$$;

-- policy installs the policy p, or its next version.
CREATE FUNCTION policy(capacity bigint, replaces int DEFAULT 0) RETURNS text LANGUAGE sql AS $$
    SELECT r.o_outcome || ', version ' || r.o_version || ', generation ' || r.o_generation
    FROM ration.put_policy_v1('p', replaces,
        format('{"durability": "%s", "afterLoss": "idle", "limit": {"capacity": %s, "refillTokens": 1, "refillSeconds": 31536000}}',
               current_setting('script.durability'), capacity)::json,
        1, 31536000000000, capacity, 'keep', NULL, 'script', '', '', '', 0) AS r
$$;

-- limited installs the policy p of another algorithm, whose window, or how long whose slots live, is 60 seconds.
CREATE FUNCTION limited(algorithm text, capacity bigint) RETURNS text LANGUAGE sql AS $$
    SELECT r.o_outcome
    FROM ration.put_policy_v1('p', 0,
        format('{"durability": "%s", "limit": {"algorithm": "%s", "limit": %s, "%s": 60}}', current_setting('script.durability'), algorithm,
               capacity, CASE algorithm WHEN 'concurrency' THEN 'ttlSeconds' ELSE 'windowSeconds' END)::json,
        1, 1, capacity, 'keep', NULL, 'script', '', '', '', 0) AS r
$$;

CREATE FUNCTION key(letter text) RETURNS uuid LANGUAGE sql IMMUTABLE
RETURN (repeat(lower(letter), 16) || lpad(to_hex(ascii(letter)), 16, '0'))::uuid;

CREATE FUNCTION bucket_table() RETURNS regclass LANGUAGE sql STABLE
RETURN ('ration.bucket_' || current_setting('script.durability'))::regclass;

-- decide asks a token of each of some keys by one of the decision functions and says what each was answered.
CREATE FUNCTION decide(function text, tail text, keys text, cost bigint, callers int, matched bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    n constant int := length(keys);
    r record;
BEGIN
    IF current_setting('script.durability') = 'durable' THEN
        function := replace(function, '_v1', '_durable_v1');
    END IF;
    EXECUTE format('SELECT * FROM ration.%s(0, $1, $2, $3, $4, $5, %s 1000000)', function, tail) INTO r
        USING matched, array_fill(1, ARRAY[n]), (SELECT array_agg(key(k)) FROM regexp_split_to_table(keys, '') AS k),
              array_fill(cost, ARRAY[n]), array_fill(callers, ARRAY[n]);
    RETURN CASE WHEN r.o_stale THEN 'stale' ELSE (
        SELECT string_agg(substr(keys, i, 1) || ' ' || CASE WHEN d.admitted IS NULL THEN 'undecided'
                                                            WHEN d.admitted < 0 THEN 'held'
                                                            ELSE d.admitted || ' admitted, ' || d.remaining || ' left' END,
                          '; ' ORDER BY i)
        FROM generate_series(1, n) AS i
        LEFT JOIN unnest(r.o_element, r.o_admitted, r.o_remaining) AS d (element, admitted, remaining) ON d.element = i) END;
END $$;

CREATE FUNCTION take(keys text, cost bigint DEFAULT 1, callers int DEFAULT 1, matched bigint DEFAULT 2) RETURNS text
LANGUAGE sql AS $$ SELECT decide('take_v1', '', keys, cost, callers, matched) $$;

CREATE FUNCTION take_new(keys text, hold text DEFAULT 'wait', cost bigint DEFAULT 1, callers int DEFAULT 1, matched bigint DEFAULT 2)
RETURNS text LANGUAGE sql AS $$ SELECT decide('take_new_v1', quote_literal(hold) || ',', keys, cost, callers, matched) $$;

-- fill gives keys a row that holds so many tokens.
CREATE FUNCTION fill(keys text, tokens bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO %s (balance, at, key, shard, policy, version, took)
                    SELECT $2 * p.d, 0, key(k), 0, p.number, p.version, 0
                    FROM ration.policy AS p, regexp_split_to_table($1, '''') AS k', bucket_table()) USING keys, tokens;
END $$;

-- hold locks the rows of keys, as somebody might by hand.
CREATE FUNCTION hold(keys text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT FROM %s WHERE key = ANY (SELECT key(k) FROM regexp_split_to_table($1, '''') AS k) FOR UPDATE',
                   bucket_table()) USING keys;
    RETURN 'held';
END $$;

-- free lists the stored keys whose rows nobody holds.
CREATE FUNCTION free() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    found text;
BEGIN
    EXECUTE format('SELECT string_agg(chr((''x'' || right(f.key::text, 2))::bit(8)::int), '''' ORDER BY f.key)
                    FROM (SELECT key FROM %s FOR UPDATE SKIP LOCKED) AS f', bucket_table()) INTO found;
    RETURN coalesce(found, 'none');
END $$;

-- buckets lists what is stored and committed.
CREATE FUNCTION buckets() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    found text;
BEGIN
    EXECUTE format('SELECT string_agg(format(''%%s %%s left, version %%s'', chr((''x'' || right(b.key::text, 2))::bit(8)::int),
                                             b.balance / p.d, b.version), ''; '' ORDER BY b.key)
                    FROM %s AS b JOIN ration.policy AS p ON p.number = b.policy', bucket_table()) INTO found;
    RETURN coalesce(found, 'none');
END $$;

CREATE FUNCTION clean() RETURNS text LANGUAGE sql AS $$
    SELECT c.o_deleted || ' deleted'
    FROM ration.clean_v1(current_setting('script.durability') = 'durable', 0, NULL, 100, 1000000) AS c
$$;

CREATE FUNCTION advisory_locks() RETURNS text LANGUAGE sql AS $$
    SELECT count(*) || ' advisory locks' FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
$$;

-- claim asks the cost of each of some keys by the general path, all or nothing, and says what each was answered.
CREATE FUNCTION claim(keys text, operation text DEFAULT NULL, cost bigint DEFAULT 1, stated bigint DEFAULT 0, hold text DEFAULT 'wait',
                      at int DEFAULT 1) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n constant int := length(keys);
    r record;
BEGIN
    SELECT * INTO r FROM ration.decide_v1(
        0, 2, ARRAY[key(operation)], ARRAY[key('c')], ARRAY[stated], ARRAY[false],
        array_fill(1, ARRAY[n]), (SELECT array_agg(key(k)) FROM regexp_split_to_table(keys, '') AS k),
        array_fill(1, ARRAY[n]), (SELECT array_agg(i) FROM generate_series(1, n) AS i), array_fill(cost, ARRAY[n]),
        array_fill(true, ARRAY[n]), 600000000, hold, at * 1000000::bigint);
    RETURN (ARRAY['again', 'decided', 'replayed', 'reused', 'in progress', 'held', 'unknown'])[r.o_status[1] + 1]
           || CASE WHEN r.o_claim IS NULL THEN '' ELSE CASE WHEN r.o_allowed[1] THEN ', allowed: ' ELSE ', denied: ' END
              || (SELECT string_agg(format('%s %s left', substr(keys, i, 1), r.o_remaining[i]), '; ' ORDER BY i)
                  FROM generate_series(1, n) AS i) END;
END $$;

-- settle says how each charge was settled: before -> after.
CREATE FUNCTION settle(operation text, actual bigint, at int DEFAULT 1) RETURNS text LANGUAGE sql AS $$
    SELECT (ARRAY['settled', 'settled before', 'conflict', 'unknown', 'slots'])[r.o_status + 1]
           || coalesce((SELECT string_agg(format('; %s -> %s%s%s', p.charged, p.actual, CASE WHEN p.applied THEN '' ELSE ', gone' END,
                                                 CASE WHEN p.clamped THEN ', cut' ELSE '' END), '' ORDER BY p.part)
                        FROM unnest(r.o_charged, r.o_actual, r.o_applied, r.o_clamped) WITH ORDINALITY
                             AS p (charged, actual, applied, clamped, part)), '')
    FROM ration.settle_v1(0, key(operation), actual, at * 1000000::bigint) AS r
$$;

-- slot is the first slot of a key that a session sees.
CREATE FUNCTION slot(letter text) RETURNS uuid LANGUAGE sql AS $$
    SELECT s.id FROM ration.slot AS s WHERE s.key = key(letter) ORDER BY s.expires_at LIMIT 1
$$;

CREATE FUNCTION renew(letter text, at int) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce('lives until ' || ration.renew_slot_v1(0, slot(letter), at * 1000000::bigint) / 1000000, 'not live')
$$;

CREATE FUNCTION release(letter text, at int DEFAULT 1) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN ration.release_slot_v1(0, slot(letter), at * 1000000::bigint) THEN 'released' ELSE 'not live' END
$$;

-- counts lists what windows, logs and slots hold and is committed.
CREATE FUNCTION counts() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT coalesce(string_agg(format('%s %s', chr(('x' || right(h.key::text, 2))::bit(8)::int), h.held), '; ' ORDER BY h.key, h.held), 'none')
    FROM (SELECT w.key, 'window ' || w.current FROM ration.window_fast AS w
          UNION ALL SELECT w.key, 'window ' || w.current FROM ration.window_durable AS w
          UNION ALL SELECT l.key, 'log ' || l.entries::text FROM ration.log_fast AS l
          UNION ALL SELECT l.key, 'log ' || l.entries::text FROM ration.log_durable AS l
          UNION ALL SELECT o.key, 'parent' FROM ration.slot_parent AS o
          UNION ALL SELECT s.key, 'slot until ' || s.expires_at / 1000000 FROM ration.slot AS s) AS h (key, held)
$$;

-- clean_rest cleans everything but buckets.
CREATE FUNCTION clean_rest(at int) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s windows, %s logs, %s slots, %s parents, %s operations deleted', w.o_deleted, l.o_deleted, s.o_deleted, p.o_deleted, o)
    FROM (SELECT current_setting('script.durability') = 'durable' AS durable, at * 1000000::bigint AS now) AS c,
         ration.clean_windows_v1(c.durable, 0, NULL, 100, c.now) AS w, ration.clean_logs_v1(c.durable, 0, NULL, 100, c.now) AS l,
         ration.clean_slots_v1(0, NULL, 100, c.now) AS s, ration.clean_slot_parents_v1(0, NULL, 100, c.now) AS p,
         ration.clean_operations_v1(0, 100, c.now) AS o
$$;

-- vanish deletes the row of a bucket, as the cleaner does when it is idle.
CREATE FUNCTION vanish(letter text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DELETE FROM %s WHERE key = key($1)', bucket_table()) USING letter;
    RETURN 'gone';
END $$;
