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
