-- log_live_v1: the part of a log that counts: the entries behind an instant, and what they add up to.
--
-- Arguments: pairs of instant and tokens, ascending by instant.
-- Units: tokens, microseconds. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.log_live_v1(p_entries bigint[], p_behind bigint, OUT o_live bigint[], OUT o_used bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    v_low  int := 0;  -- so many pairs are known not to count
    v_high int := cardinality(p_entries) / 2;
    v_half int;
BEGIN
    WHILE v_low < v_high LOOP
        v_half := (v_low + v_high) / 2;
        IF p_entries[2 * v_half + 1] > p_behind THEN
            v_high := v_half;
        ELSE
            v_low := v_half + 1;
        END IF;
    END LOOP;
    o_live := p_entries[2 * v_low + 1:];
    SELECT coalesce(sum(o_live[2 * i]), 0) INTO o_used FROM generate_series(1, cardinality(o_live) / 2) AS i;
END $$;
