-- decide_guard_v1: the shape of decide_v1's arguments. What would cost a statement to find out is found out on the way: by
-- decide_v1 that p_claims ascends, by decide_write_v1 that no key occurs twice.
--
-- Units: tokens, microseconds. Clock: none. Locks: none.
-- SQLSTATE: RN004 anything else than 1 to 1,024 claims with at most 1,024 checks and keys, all operations distinct,
--           costs >= 1, stated costs and retention >= 0, a peek without operation, under `alone` one claim.
CREATE OR REPLACE FUNCTION ration.decide_guard_v1(
    p_generation bigint, p_operations uuid[], p_contents uuid[], p_stated bigint[], p_peeks boolean[], p_policies int[],
    p_keys uuid[], p_claims int[], p_cells int[], p_costs bigint[], p_priced boolean[], p_retention bigint, p_hold text)
RETURNS void LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    v_claims constant int := cardinality(p_stated);
    v_keys   constant int := cardinality(p_keys);
    v_checks constant int := cardinality(p_claims);
BEGIN
    -- NULL must never stand for nothing to pay: each condition has to be true, not merely not false.
    IF (p_generation IS NOT NULL AND p_retention >= 0 AND p_hold IN ('try', 'wait', 'skip', 'alone')
        AND v_claims BETWEEN 1 AND 1024 AND v_keys <= 1024 AND v_checks <= 1024 AND (v_claims = 1 OR p_hold <> 'alone')
        AND ration.list_v1(p_stated, v_claims) AND 0 <= ALL (p_stated) AND ration.list_v1(p_peeks, v_claims)
        AND cardinality(p_operations) = v_claims AND array_upper(p_operations, 1) = v_claims
        AND cardinality(p_contents) = v_claims AND array_upper(p_contents, 1) = v_claims
        AND ration.list_v1(p_keys, v_keys) AND ration.list_v1(p_policies, v_keys)
        AND ration.list_v1(p_claims, v_checks) AND ration.list_v1(p_cells, v_checks)
        AND ration.list_v1(p_costs, v_checks) AND 1 <= ALL (p_costs) AND ration.list_v1(p_priced, v_checks)
        AND (array_remove(p_operations, NULL) = '{}'
             OR NOT EXISTS (SELECT FROM unnest(p_operations, p_contents, p_peeks) AS c (operation, content, peek)
                            WHERE c.operation IS NOT NULL AND (c.content IS NULL OR c.peek))
                AND cardinality(array_remove(p_operations, NULL)) = (SELECT count(DISTINCT c.operation) FROM unnest(p_operations) AS c (operation)))
       ) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'these arrays are no claims: see the header of decide_guard_v1';
    END IF;
END $$;
