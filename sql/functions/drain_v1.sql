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
