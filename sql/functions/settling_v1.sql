-- settling_v1: the parts of an operation whose charge a settlement replaces, each with its policy in force: those charged
-- by the request's own cost, but for slots, which are released instead. What was charged before what the policy keeps began
-- anew, or was deleted, has none.
--
-- Answers: part, its number among p_parts from 1; place, see state_place_v1; its key, cost and mark; the policy's figures.
-- Units: tokens, microseconds, units of 1/d token. Clock: none. Locks: none. SQLSTATE: none.
-- Note:  without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.settling_v1(p_parts ration.operation_part[])
RETURNS TABLE (part int, place int, key uuid, cost bigint, mark bigint, policy int, version int, n bigint, d bigint,
               capacity bigint, capacity_units bigint, idle_balance bigint, idle_at bigint, span bigint, sliding boolean)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT e.part::int, ration.state_place_v1(p.algorithm, p.strict, p.durability), e.key, e.cost, e.mark, p.number, p.version, p.n, p.d,
           p.capacity, p.capacity_units, p.idle_balance, p.idle_at, p.span, p.algorithm = 'sliding_window_counter'
    FROM unnest(p_parts) WITH ORDINALITY AS e (policy, version, key, cost, priced, admitted, remaining, retry_after, reset_after,
                                               mark, slot, slot_expires_at, part)
    JOIN ration.policy AS p ON p.number = e.policy
    WHERE e.priced AND e.cost > 0 AND e.slot IS NULL AND e.version >= p.since;
END;
