-- ready_v1: whether a call may decide now: isolation level, life of the fast state, generation. False means that the call
-- was matched under another generation.
--
-- Arguments: p_fast says whether the call touches fast state; p_generation NULL fits every generation.
-- Units: none. Clock: none. Locks: none.
-- SQLSTATE: RN001 isolation level other than READ COMMITTED; RN002 the fast state was lost, call recover_v1.
CREATE OR REPLACE FUNCTION ration.ready_v1(p_fast boolean, p_generation bigint)
RETURNS boolean LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_generation bigint;
    v_alive      boolean;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = 'RN001', MESSAGE = 'a decision needs isolation level READ COMMITTED';
    END IF;
    SELECT s.generation, m.incarnation IS NOT NULL INTO v_generation, v_alive
    FROM ration.policy_set AS s LEFT JOIN ration.incarnation_marker AS m ON m.incarnation = s.incarnation;
    IF p_fast AND NOT v_alive THEN
        RAISE EXCEPTION USING ERRCODE = 'RN002', MESSAGE = 'the fast state was lost in a crash: call ration.recover_v1';
    END IF;
    RETURN v_generation = coalesce(p_generation, v_generation);
END $$;
