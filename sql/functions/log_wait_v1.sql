-- log_wait_v1: the instant of the entry that has to leave a log, the oldest first, before so many tokens are free.
--
-- Arguments: pairs of instant and tokens, ascending by instant; p_extra tokens more stand at p_extra_at; p_lack is at most
--        what all of them add up to.
-- Units: tokens, microseconds. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.log_wait_v1(p_entries bigint[], p_extra bigint, p_extra_at bigint, p_lack bigint)
RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    v_lack  bigint := p_lack;
    v_extra bigint := p_extra;
BEGIN
    FOR i IN 1 .. cardinality(p_entries) / 2 LOOP
        IF v_extra > 0 AND p_entries[2 * i - 1] > p_extra_at THEN
            v_lack := v_lack - v_extra;
            IF v_lack <= 0 THEN
                RETURN p_extra_at;
            END IF;
            v_extra := 0;
        END IF;
        v_lack := v_lack - p_entries[2 * i];
        IF v_lack <= 0 THEN
            RETURN p_entries[2 * i - 1];
        END IF;
    END LOOP;
    RETURN p_extra_at;
END $$;
