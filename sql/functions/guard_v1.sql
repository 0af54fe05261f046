-- guard_v1: what stands before every decision of take_v1 and take_new_v1: the shape of the arguments, then ready_v1.
--
-- Units: counts of callers, costs in tokens.
-- Clock: none. Locks: none.
-- SQLSTATE: RN001 RN002 from ready_v1; RN004 arrays of different length or not counted from 1, none or more than 1,024
--           elements, a cost below 1, a count below 0, NULL for any of them.
CREATE OR REPLACE FUNCTION ration.guard_v1(
    p_fast boolean, p_generation bigint, p_policies int[], p_keys uuid[], p_costs bigint[], p_counts int[])
RETURNS boolean LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_length constant int := cardinality(p_keys);
BEGIN
    -- NULL must never stand for nothing to pay: each condition has to be true, not merely not false.
    IF (p_generation IS NOT NULL AND v_length BETWEEN 1 AND 1024 AND array_upper(p_keys, 1) = v_length
        AND array_upper(p_policies, 1) = v_length AND cardinality(p_policies) = v_length
        AND array_upper(p_costs, 1) = v_length AND cardinality(p_costs) = v_length AND 1 <= ALL (p_costs)
        AND array_upper(p_counts, 1) = v_length AND cardinality(p_counts) = v_length AND 0 <= ALL (p_counts)
        AND array_position(p_policies, NULL) IS NULL AND array_position(p_keys, NULL) IS NULL) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004',
            MESSAGE = 'a call takes 1 to 1024 elements, as many policies, keys, costs >= 1 and counts >= 0';
    END IF;
    RETURN ration.ready_v1(p_fast, p_generation);
END $$;
