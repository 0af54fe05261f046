-- bucket_key: the key under which a policy in force keeps the bucket of a caller: the first 128 bits of the SHA-256 of
-- length-prefixed fields: 'ration.key.v1', the policy's id, then name and value of each attribute of its `per`, in the
-- order account, user, apiKey, oauthToken, ip, targetAccount, plan, region, operation. policy.KeyOf gives the same.
--
-- Arguments: a policy's id and the caller's attributes by name: {"account": "A", "operation": "report.create"}.
-- Answers: the key; NULL when there is no such policy or an attribute of its key is missing.
-- Units: none. Clock: none. Locks: none.
-- SQLSTATE: 22P02 the ip is no address.
CREATE OR REPLACE FUNCTION ration.bucket_key(p_policy text, p_attributes jsonb)
RETURNS uuid LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_spec     json;
    v_encoding bytea;
    v_name     text;
    v_text     text;
    v_value    bytea;
BEGIN
    SELECT v.content INTO v_spec
    FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version) WHERE p.id = p_policy;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    v_encoding := ration.key_field_v1(convert_to('ration.key.v1', 'UTF8')) || ration.key_field_v1(convert_to(p_policy, 'UTF8'));
    FOR v_name IN
        SELECT a.name
        FROM unnest(ARRAY['account', 'user', 'apiKey', 'oauthToken', 'ip', 'targetAccount', 'plan', 'region', 'operation'])
             WITH ORDINALITY AS a (name, place)
        WHERE a.name IN (SELECT json_array_elements_text(v_spec -> 'per'))
        ORDER BY a.place
    LOOP
        v_text := p_attributes ->> v_name;
        IF v_text IS NULL THEN
            RETURN NULL;
        END IF;
        IF v_name = 'ip' THEN
            SELECT k.name, k.value INTO v_name, v_value
            FROM ration.key_address_v1(v_text::inet, (v_spec #>> '{ipPrefix,v4}')::int, (v_spec #>> '{ipPrefix,v6}')::int) AS k;
        ELSIF v_name = 'targetAccount' THEN
            v_value := convert_to(ration.canonical_target_v1(v_text), 'UTF8');
        ELSE
            v_value := convert_to(v_text, 'UTF8');
        END IF;
        v_encoding := v_encoding || ration.key_field_v1(convert_to(v_name, 'UTF8')) || ration.key_field_v1(v_value);
    END LOOP;
    RETURN encode(substr(sha256(v_encoding), 1, 16), 'hex')::uuid;
END $$;
