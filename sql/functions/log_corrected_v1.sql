-- log_corrected_v1: a log whose entry of an instant was settled to another cost. An entry of nothing is dropped.
--
-- Arguments: pairs of instant and tokens, ascending by instant; the instant of the entry; as corrected_v1.
-- Answers: the log, NULL when it has no such entry; whether the extra charge was cut.
-- Units: tokens, microseconds. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.log_corrected_v1(
    p_entries bigint[], p_mark bigint, p_charged bigint, p_actual bigint, p_limit bigint,
    OUT o_entries bigint[], OUT o_clamped boolean)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    v_counted bigint;
    v_place   int;  -- where the entry's tokens stand
    v_change  bigint;
BEGIN
    SELECT sum(p_entries[2 * i]), max(2 * i) FILTER (WHERE p_entries[2 * i - 1] = p_mark) INTO v_counted, v_place
    FROM generate_series(1, cardinality(p_entries) / 2) AS i;
    IF v_place IS NULL THEN
        RETURN;
    END IF;
    v_change := ration.corrected_v1(p_charged, p_actual, v_counted, p_limit);
    o_clamped := v_change < p_actual - p_charged;
    IF p_entries[v_place] + v_change > 0 THEN
        p_entries[v_place] := p_entries[v_place] + v_change;
        o_entries := p_entries;
    ELSE
        o_entries := p_entries[:v_place - 2] || p_entries[v_place + 1:];
    END IF;
END $$;
