-- decide_new_v1: whether every operation id of a decide_v1 call is new, as nearly all are: then there is nothing to replay.
--
-- Arguments: p_operations by claim, NULL for none.
-- Answers: true when no other call decides one of them at this moment and nothing is stored under any.
-- Units: none. Clock: none.
-- Locks: tries the advisory lock of each id, and keeps those it gets to the end of the transaction. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.decide_new_v1(p_shard int, p_operations uuid[])
RETURNS boolean LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    v_free boolean;
BEGIN
    SELECT bool_and(pg_try_advisory_xact_lock(ration.advisory_key_v1(o.id))) INTO v_free
    FROM unnest(p_operations) AS o (id) WHERE o.id IS NOT NULL;
    -- By a statement of its own, which sees what the holders before have stored.
    RETURN v_free AND NOT EXISTS (SELECT FROM ration.operation AS f WHERE f.shard = p_shard AND f.key = ANY (p_operations));
END $$;
