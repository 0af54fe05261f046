-- apply_kill_switch_v1: brings the modes in force up to the kill switches that lie: of policies whose ids begin with a prefix, and
-- of their overrides' limits.
--
-- Arguments: the prefix of a switch that was thrown or is no more; the generation of the change.
-- Units: none. Clock: none.
-- Locks: the rows of policies that it changes. The caller holds the row of ration.policy_set, and bumps its generation.
-- SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.apply_kill_switch_v1(p_prefix text, p_generation bigint)
RETURNS void LANGUAGE sql VOLATILE
BEGIN ATOMIC
    UPDATE ration.policy AS p SET mode = now.mode, generation = p_generation
    FROM (SELECT f.number, ration.effective_mode_v1(f.id, coalesce(v.content ->> 'mode', 'enforce')) AS mode
          FROM ration.policy AS f JOIN ration.policy_version AS v USING (number, version)
          WHERE starts_with(f.id, p_prefix) AND f.mode IN ('enforce', 'shadow')) AS now
    WHERE p.number = now.number AND p.mode <> now.mode;
END;
