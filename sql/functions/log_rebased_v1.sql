-- log_rebased_v1: a log whose entries behind an instant stand at it.
--
-- Arguments: pairs of instant and tokens, ascending by instant; the instant.
-- Units: tokens, microseconds. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.log_rebased_v1(p_entries bigint[], p_at bigint)
RETURNS bigint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce(array_agg(v.value ORDER BY e.at, v.place), '{}')
    FROM (SELECT least(p_entries[2 * i - 1], p_at) AS at, sum(p_entries[2 * i])::bigint AS tokens
          FROM generate_series(1, cardinality(p_entries) / 2) AS i GROUP BY 1) AS e
    CROSS JOIN LATERAL (VALUES (1, e.at), (2, e.tokens)) AS v (place, value);
END;
