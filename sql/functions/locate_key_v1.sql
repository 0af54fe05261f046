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
