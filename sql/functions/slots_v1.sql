-- slots_v1: the live slots of a concurrency key as a log: pairs of expiry and cost, ascending by expiry.
--
-- Units: microseconds, units of concurrency. Clock: none, the instant is given. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.slots_v1(p_shard int, p_key uuid, p_now bigint)
RETURNS bigint[] LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT coalesce(array_agg(v.value ORDER BY s.expires_at, s.id, v.place), '{}')
    FROM ration.slot AS s CROSS JOIN LATERAL (VALUES (1, s.expires_at), (2, s.cost)) AS v (place, value)
    WHERE s.shard = p_shard AND s.key = p_key AND s.expires_at > p_now;
END;
