-- hindering_overrides_v1: the overrides that stand in the way of a restart of their policy: those with another limit, which would
-- be one of other state; and all, where other keys come to be.
--
-- Arguments: a policy; its new content.
-- Answers: the attributes of the first ten, NULL where there is none.
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.hindering_overrides_v1(p_policy int, p_content json)
RETURNS text[] LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT array_agg(h.attributes ORDER BY h.number)
    FROM (SELECT o.number, o.attributes::text AS attributes
          FROM ration.override AS o
          JOIN ration.policy AS p ON p.number = o.policy
          JOIN ration.policy_version AS v ON v.number = p.number AND v.version = p.version
          WHERE o.policy = p_policy
            AND (o.action = 'limit' OR (v.content -> 'per')::jsonb <> (p_content -> 'per')::jsonb
                 OR (v.content -> 'ipPrefix')::jsonb IS DISTINCT FROM (p_content -> 'ipPrefix')::jsonb)
          ORDER BY o.number LIMIT 10) AS h;
END;
