-- slot_log_v1: the live slots of a concurrency key that expire first, as a log: pairs of expiry and cost, ascending by expiry.
--
-- Arguments: p_count is how many at most; as many as the units that are lacking are enough, since each holds one at least.
-- Units: microseconds, units of concurrency. Clock: none, the instant is given. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.slot_log_v1(p_shard int, p_key uuid, p_now bigint, p_count bigint)
RETURNS bigint[] LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (SELECT coalesce(array_agg(v.value ORDER BY s.expires_at, s.id, v.place), '{}')
            FROM (SELECT f.expires_at, f.cost, f.id FROM ration.slot AS f
                  WHERE f.shard = p_shard AND f.key = p_key AND f.expires_at > p_now ORDER BY f.expires_at LIMIT p_count) AS s
            CROSS JOIN LATERAL (VALUES (1, s.expires_at), (2, s.cost)) AS v (place, value));
END $$;
