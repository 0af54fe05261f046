-- carry_v1: carries a balance over policy changes, version by version: earn under the old version up to the instant of
-- the change, convert by the rule that the change stated, go on from there. The one home of that rule.
--
-- Arguments: policy number, the version the balance was settled under, the version wanted, balance, instant.
-- Answers: the balance under the wanted version and the instant it stands for, never before p_at.
--        keep: floor(balance * d_new / d_old), in numeric, between minus and plus the new capacity.
-- Units: balances in units of 1/d token of their version, instants in microseconds.
-- Clock: none; it reaches the last change, not now.
-- Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.carry_v1(
    p_policy int, p_from int, p_to int, p_balance bigint, p_at bigint, OUT o_balance bigint, OUT o_at bigint)
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    r        record;
    v_scaled numeric;
BEGIN
    o_balance := p_balance;
    o_at := p_at;
    FOR r IN
        SELECT w.n, w.d, w.capacity_units, v.d AS new_d, v.capacity_units AS new_capacity_units, v.installed_at
        FROM ration.policy_version AS v
        JOIN ration.policy_version AS w ON w.number = v.number AND w.version = v.version - 1
        WHERE v.number = p_policy AND v.version > p_from AND v.version <= p_to
          -- Versions of the same figures are crossed by earning on: only the last one's instant may be ahead of the clock.
          AND (v.version = p_to OR (v.n, v.d, v.capacity_units) <> (w.n, w.d, w.capacity_units))
        ORDER BY v.version
    LOOP
        o_balance := ration.settled_v1(o_balance, o_at, r.installed_at, r.n, r.capacity_units);
        o_at := greatest(o_at, r.installed_at);
        -- Numeric division rounds, so the remainder is taken off first: what is left divides exactly.
        v_scaled := o_balance::numeric * r.new_d;
        v_scaled := div(v_scaled - mod(mod(v_scaled, r.d) + r.d, r.d), r.d);
        o_balance := least(r.new_capacity_units, greatest(-r.new_capacity_units, v_scaled))::bigint;
    END LOOP;
END $$;
