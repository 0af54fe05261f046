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
