-- key_figures_v1: what keys hold at an instant, as the next decision would find them. For looks at the state; nothing is
-- locked or charged.
--
-- Arguments: distinct keys, each with the number of the policy that counts it (locate_key_v1, policy_keys_v1).
-- Answers: a row for each key: whether it is stored at all (an absent key is an idle one), and under which version it was
--        settled last (none for slots, which have no version); what is left of the limit, below zero for a debt; the time until
--        nothing is spent any more; how far the stored state is ahead of the clock.
-- Units: tokens, microseconds from p_now. Clock: none, the instant is given. Locks: none.
-- SQLSTATE: RN001 RN002 from ready_v1.
CREATE OR REPLACE FUNCTION ration.key_figures_v1(p_shard int, p_policies int[], p_keys uuid[], p_now bigint)
RETURNS TABLE (policy int, key uuid, stored boolean, settled_version int, remaining bigint, reset_after bigint, ahead bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM ration.ready_v1(true, NULL);
    RETURN QUERY
    SELECT c.policy, c.key, c.writer IS NOT NULL, s.version, f.remaining, f.reset_after,
           -- An entry of a log that counts in segments stands at the end of its segment.
           greatest(0, CASE WHEN c.place <= 4 THEN c.at - p_now WHEN c.place <= 6 THEN c.at - greatest(p_now, c.mark) END)
    FROM ration.policy_set AS g
    CROSS JOIN LATERAL ration.decide_read_v1(p_shard, g.generation, p_policies, p_keys, array_fill(true, ARRAY[cardinality(p_keys)]), p_now) AS r
    CROSS JOIN LATERAL unnest(
        p_policies, p_keys, r.o_places, r.o_writers, r.o_capacities, r.o_n, r.o_d, r.o_spans, r.o_sliding, r.o_base, r.o_at, r.o_previous,
        r.o_marks, r.o_logs)
        WITH ORDINALITY AS c (policy, key, place, writer, capacity, n, d, span, sliding, base, at, previous, mark, entries, n_th)
    CROSS JOIN LATERAL ration.decide_figures_v1(p_now, c.place, NULL, c.capacity, 0, c.n, c.d, c.span, c.sliding, c.base, c.at, c.previous,
                                                c.mark, ROW (c.entries)::ration.log_entries) AS f
    LEFT JOIN LATERAL (
        SELECT t.version FROM ration.bucket_fast AS t WHERE c.place = 1 AND t.shard = p_shard AND t.key = c.key
        UNION ALL SELECT t.version FROM ration.bucket_durable AS t WHERE c.place = 2 AND t.shard = p_shard AND t.key = c.key
        UNION ALL SELECT t.version FROM ration.window_fast AS t WHERE c.place = 3 AND t.shard = p_shard AND t.key = c.key
        UNION ALL SELECT t.version FROM ration.window_durable AS t WHERE c.place = 4 AND t.shard = p_shard AND t.key = c.key
        UNION ALL SELECT t.version FROM ration.log_fast AS t WHERE c.place = 5 AND t.shard = p_shard AND t.key = c.key
        UNION ALL SELECT t.version FROM ration.log_durable AS t WHERE c.place = 6 AND t.shard = p_shard AND t.key = c.key) AS s ON true
    WHERE c.place IS NOT NULL  -- of policies that are gone by now
    ORDER BY c.n_th;
END $$;
