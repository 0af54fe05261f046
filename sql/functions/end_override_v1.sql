-- end_override_v1: takes an override away. What the bucket of another limit holds goes back to the key's own bucket, by keep; the
-- policy that held that limit ends.
--
-- Arguments: the override; whether its policy goes on, so that there is a bucket to give back to; the generation and the
--        instant of the change.
-- Units: microseconds. Clock: none, the instant is given.
-- Locks: the bucket of the override, then the key's own. The caller holds the row of ration.policy_set, bumps its generation,
--        and tells the policy's instances.
-- SQLSTATE: 57014 statement_timeout.
CREATE OR REPLACE FUNCTION ration.end_override_v1(p_override ration.override, p_goes_on boolean, p_generation bigint, p_at bigint)
RETURNS void LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_limited ration.policy;
    v_version ration.policy_version;
    v_policy  ration.policy;
    v_balance bigint;
BEGIN
    DELETE FROM ration.override AS o WHERE o.number = p_override.number;
    IF p_override.limited IS NULL THEN
        RETURN;
    END IF;
    SELECT p.* INTO v_limited FROM ration.policy AS p WHERE p.number = p_override.limited;
    SELECT p.* INTO v_policy FROM ration.policy AS p WHERE p.number = p_override.policy;
    IF p_goes_on AND v_limited.algorithm = 'token_bucket' THEN
        v_balance := ration.drain_v1(v_limited.number, ration.bucket_key(v_limited.id, p_override.attributes), p_at);
        v_balance := least(v_policy.capacity_units, greatest(-v_policy.capacity_units, ration.converted_v1(
            'keep', v_balance, v_limited.d, v_limited.capacity_units, v_policy.d, v_policy.capacity_units)));
        EXECUTE format('INSERT INTO ration.%I AS b (balance, at, key, shard, policy, version, took)
                        VALUES ($1, $2, $3, 0, $4, $5, 0)
                        ON CONFLICT (shard, key) DO UPDATE
                        SET balance = excluded.balance, at = greatest(b.at, excluded.at), version = excluded.version, took = 0',
                       'bucket_' || v_policy.durability)
            USING v_balance, p_at, p_override.key, v_policy.number, v_policy.version;
    END IF;
    SELECT v.* INTO v_version FROM ration.policy_version AS v WHERE v.number = v_limited.number AND v.version = v_limited.version;
    PERFORM ration.install_version_v1(v_limited.id, v_version.content, v_version.n, v_version.d, v_version.capacity, 'keep', NULL,
                                      true, v_policy.number, p_generation, p_at);
END $$;
