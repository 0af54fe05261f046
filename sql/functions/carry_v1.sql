-- carry_v1: carries a balance over policy changes, version by version: earn under the old version up to the instant of
-- the change, convert by the rule that the change stated, clamp to minus and plus the new capacity, go on from there.
--
-- Arguments: policy number, the version the balance was settled under, the version wanted, balance, instant.
-- Answers: the balance under the wanted version and the instant it stands for, and whether it had to be clamped. keep and scale
--        convert it by converted_v1, and never move the instant back. Behind reset and restart a bucket is an idle one.
-- Units: balances in units of 1/d token of their version, instants in microseconds.
-- Clock: none; it reaches the last change, not now.
-- Locks: none. SQLSTATE: none.
-- Note:  called for each row of an older version, so it has no settings of its own: to set search_path and to set it back
--        would be two thirds of a call. Whoever runs it with more than his own rights has set it.
CREATE OR REPLACE FUNCTION ration.carry_v1(
    p_policy int, p_from int, p_to int, p_balance bigint, p_at bigint, OUT o_balance bigint, OUT o_at bigint, OUT o_clamped boolean)
LANGUAGE plpgsql STABLE STRICT
AS $$
DECLARE
    r           record;
    v_converted numeric;
BEGIN
    o_balance := p_balance;
    o_at := p_at;
    o_clamped := false;
    FOR r IN
        SELECT v.balances, w.n, w.d, w.capacity_units, v.d AS new_d, v.capacity_units AS new_capacity_units, v.installed_at,
               v.idle_balance, v.idle_at, v.balances IN ('reset', 'restart') AS anew
        FROM ration.policy_version AS v
        JOIN ration.policy_version AS w ON w.number = v.number AND w.version = v.version - 1
        WHERE v.number = p_policy AND v.version > p_from AND v.version <= p_to
          -- Versions of the same figures are crossed by earning on: only the last one's instant may be ahead of the clock.
          AND (v.version = p_to OR v.balances IN ('reset', 'restart') OR (v.n, v.d, v.capacity_units) <> (w.n, w.d, w.capacity_units))
        ORDER BY v.version
    LOOP
        IF r.anew THEN
            o_balance := r.idle_balance;
            o_at := r.idle_at;
            o_clamped := false;
            CONTINUE;
        END IF;
        o_balance := ration.settled_v1(o_balance, o_at, r.installed_at, r.n, r.capacity_units);
        o_at := greatest(o_at, r.installed_at);
        v_converted := ration.converted_v1(r.balances, o_balance, r.d, r.capacity_units, r.new_d, r.new_capacity_units);
        o_balance := ration.clamped_v1(v_converted, r.new_capacity_units);
        o_clamped := o_clamped OR o_balance <> v_converted;
    END LOOP;
END $$;
