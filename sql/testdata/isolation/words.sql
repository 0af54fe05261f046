-- The words of the scripts. Everything happens a second after the policy's installation; tokens come back within years
-- only. A key is a letter; 'a' and 'A' are two keys of the same first 64 bits. A table is that of script.durability.

CREATE FUNCTION empty() RETURNS void LANGUAGE sql AS $$
    TRUNCATE ration.policy, ration.policy_version, ration.bucket_fast, ration.bucket_durable, ration.state_loss RESTART IDENTITY;
    UPDATE ration.policy_set SET generation = 1;
$$;

-- policy installs the policy p, or its next version.
CREATE FUNCTION policy(capacity bigint, replaces int DEFAULT 0) RETURNS text LANGUAGE sql AS $$
    SELECT r.o_outcome || ', version ' || r.o_version || ', generation ' || r.o_generation
    FROM ration.put_policy_v1('p', replaces,
        format('{"durability": "%s", "afterLoss": "idle", "limit": {"capacity": %s, "refillTokens": 1, "refillSeconds": 31536000}}',
               current_setting('script.durability'), capacity)::json,
        1, 31536000000000, capacity, 'keep', 'script', '', '', 0) AS r
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
