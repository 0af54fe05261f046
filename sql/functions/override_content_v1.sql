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
