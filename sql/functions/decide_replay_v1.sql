-- decide_replay_v1: what decide_v1 finds under the operation ids of its claims: takes each id's advisory lock, if it is free,
-- so that nobody else decides it until this transaction ends, and then reads, by a new statement, what is stored.
--
-- A stored outcome is that of the same request if the content is the same, and the stated cost; one that states none is the
-- same as one that states what it would be charged.
--
-- Arguments: as decide_v1.
-- Answers: by claim, statuses of decide_v1 (0: not decided yet, or no operation id); by part, those of replayed claims.
-- Units: tokens, microseconds. Clock: none, the instant is given.
-- Locks: advisory locks on operation ids, tried and never waited for. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.decide_replay_v1(
    p_shard int, p_now bigint, p_operations uuid[], p_contents uuid[], p_stated bigint[], p_claims int[], p_costs bigint[],
    OUT o_status int[], OUT o_allowed boolean[], OUT o_at bigint[], OUT o_claim int[], OUT o_policy int[], OUT o_version int[],
    OUT o_admitted boolean[], OUT o_remaining bigint[], OUT o_retry_after bigint[], OUT o_reset_after bigint[],
    OUT o_slot uuid[], OUT o_slot_expires bigint[], OUT o_cost bigint[])
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET enable_memoize = off
AS $$
DECLARE
    v_free boolean[];
BEGIN
    SELECT array_agg(CASE WHEN c.operation IS NOT NULL
                          THEN pg_try_advisory_xact_lock(ration.advisory_key_v1(c.operation)) END ORDER BY c.claim)
    INTO v_free
    FROM unnest(p_operations) WITH ORDINALITY AS c (operation, claim);

    WITH found AS MATERIALIZED (
        SELECT c.claim::int, o.allowed, o.decided_at, o.parts,
               CASE WHEN c.operation IS NULL THEN 0
                    WHEN NOT v_free[c.claim] THEN 4
                    WHEN o.allowed IS NULL THEN 0
                    WHEN o.content = c.content AND (o.stated = c.stated OR (0 IN (o.stated, c.stated) AND o.price = coalesce(
                             (SELECT max(p_costs[i]) FROM generate_series(1, cardinality(p_claims)) AS i WHERE p_claims[i] = c.claim),
                             o.price))) THEN 2
                    ELSE 3 END AS status
        FROM unnest(p_operations, p_contents, p_stated) WITH ORDINALITY AS c (operation, content, stated, claim)
        LEFT JOIN LATERAL (SELECT f.* FROM ration.operation AS f
                           WHERE f.shard = p_shard AND f.key = c.operation AND v_free[c.claim] OFFSET 0) AS o ON true)
    SELECT c.status, c.allowed, c.at, p.*
    INTO o_status, o_allowed, o_at, o_claim, o_policy, o_version, o_admitted, o_remaining, o_retry_after, o_reset_after, o_slot,
         o_slot_expires, o_cost
    FROM (SELECT array_agg(f.status ORDER BY f.claim) AS status, array_agg(coalesce(f.allowed AND f.status = 2, false) ORDER BY f.claim) AS allowed,
                 array_agg(CASE WHEN f.status = 2 THEN f.decided_at ELSE p_now END ORDER BY f.claim) AS at
          FROM found AS f) AS c
    CROSS JOIN (SELECT array_agg(r.claim), array_agg(r.policy), array_agg(r.version), array_agg(r.admitted), array_agg(r.remaining),
                       array_agg(r.retry_after), array_agg(r.reset_after), array_agg(r.slot), array_agg(r.slot_expires_at),
                       array_agg(r.cost)
                FROM (SELECT f.claim, u.* FROM found AS f CROSS JOIN LATERAL unnest(f.parts) WITH ORDINALITY AS u
                      WHERE f.status = 2 ORDER BY f.claim, u.ordinality) AS r) AS p;
END $$;
