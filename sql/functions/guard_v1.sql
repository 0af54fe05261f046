-- guard_v1: what stands before every decision: isolation level, shape of the arguments, life of the fast state,
-- generation. Answers whether the call may decide: false means that it was matched under another generation.
--
-- Units: counts of callers, costs in tokens.
-- Clock: none. Locks: none.
-- SQLSTATE: RN001 isolation level other than READ COMMITTED; RN002 the fast state was lost, call recover_v1;
--           RN004 arrays of different length or not counted from 1, none or more than 1,024 elements, a cost
--           below 1, a count below 0, NULL for any of them.
CREATE OR REPLACE FUNCTION ration.guard_v1(
    p_fast boolean, p_generation bigint, p_policies int[], p_keys uuid[], p_costs bigint[], p_counts int[])
RETURNS boolean LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_generation  bigint;
    v_incarnation uuid;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = 'RN001', MESSAGE = 'a decision needs isolation level READ COMMITTED';
    END IF;
    -- NULL must never stand for nothing to pay: each condition has to be true, not merely not false.
    IF (p_generation IS NOT NULL AND cardinality(p_keys) <= 1024 AND array_dims(p_keys) = '[1:' || cardinality(p_keys) || ']'
        AND array_dims(p_policies) = array_dims(p_keys) AND array_dims(p_costs) = array_dims(p_keys)
        AND array_dims(p_counts) = array_dims(p_keys) AND 1 <= ALL (p_costs) AND 0 <= ALL (p_counts)
        AND array_position(p_policies, NULL) IS NULL AND array_position(p_keys, NULL) IS NULL) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004',
            MESSAGE = 'a call takes 1 to 1024 elements, as many policies, keys, costs >= 1 and counts >= 0';
    END IF;
    SELECT s.generation, s.incarnation INTO v_generation, v_incarnation FROM ration.policy_set AS s;
    IF p_fast AND NOT EXISTS (SELECT FROM ration.incarnation_marker AS m WHERE m.incarnation = v_incarnation) THEN
        RAISE EXCEPTION USING ERRCODE = 'RN002', MESSAGE = 'the fast state was lost in a crash: call ration.recover_v1';
    END IF;
    RETURN v_generation = p_generation;
END $$;
