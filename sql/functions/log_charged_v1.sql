-- log_charged_v1: a log with a charge more: behind its newest entry, or joined to it when that is of the same instant.
--
-- Arguments: pairs of instant and tokens, ascending by instant; p_at is not before the newest.
-- Units: tokens, microseconds. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.log_charged_v1(p_entries bigint[], p_at bigint, p_tokens bigint)
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    v_length constant int := cardinality(p_entries);
BEGIN
    IF v_length > 0 AND p_entries[v_length - 1] = p_at THEN
        p_entries[v_length] := p_entries[v_length] + p_tokens;
        RETURN p_entries;
    END IF;
    RETURN p_entries || ARRAY[p_at, p_tokens];
END $$;
