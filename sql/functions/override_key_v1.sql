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
