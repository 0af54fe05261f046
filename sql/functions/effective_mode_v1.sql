-- effective_mode_v1: the mode in force of a policy: what its content says, but shadow where a kill switch lies over one that
-- enforces. The one home of that rule.
--
-- Arguments: the policy's id and the mode of its content.
-- Units: none. Clock: none; a switch lies until expire_v1 takes it away.
-- Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.effective_mode_v1(p_id text, p_mode text)
RETURNS text LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT CASE WHEN p_mode = 'enforce' AND EXISTS (SELECT FROM ration.kill_switch AS k WHERE starts_with(p_id, k.prefix)) THEN 'shadow'
                ELSE p_mode END;
END;
