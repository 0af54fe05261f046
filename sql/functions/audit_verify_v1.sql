-- audit_verify_v1: walks a piece of the audit's chain and tells the first row that is not as it was written.
--
-- Arguments: the row to begin behind and its hash, as the piece before answered them: 0 and no bytes begin the chain. At most
--        p_rows rows, 1 to 10,000, are walked.
-- Answers: o_rows how many were walked, o_last and o_hash the last one of them; o_done that no row follows, so that the
--        chain's end was compared with its head. o_fault, when something is wrong, and o_row, where:
--        changed  the row is not what its hash, or that of the row behind it, was made of;
--        missing  the row, and maybe more behind it, was taken out;
--        cut      the row and all behind it were taken off the end: the head knows of them;
--        added    the row was put behind the head without being chained;
--        headless the head is gone.
--        NULL: what was walked is whole.
-- Units: rows.
-- Clock: none. Locks: none; it sees the chain and its head as of one instant.
-- SQLSTATE: RN004 p_rows is out of its range.
CREATE OR REPLACE FUNCTION ration.audit_verify_v1(
    p_after bigint, p_hash bytea, p_rows int,
    OUT o_rows int, OUT o_last bigint, OUT o_hash bytea, OUT o_done boolean, OUT o_fault text, OUT o_row bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_row  ration.audit;
    v_head ration.audit_head;
BEGIN
    IF (p_rows BETWEEN 1 AND 10000) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'p_rows has to be 1 to 10000';
    END IF;
    o_rows := 0;
    o_last := p_after;
    o_hash := p_hash;
    FOR v_row IN SELECT a.* FROM ration.audit AS a WHERE a.id > p_after ORDER BY a.id LIMIT p_rows LOOP
        -- Numbers may have gaps in what was written before there was a chain: only the hash tells that a row is missing.
        IF v_row.previous IS DISTINCT FROM o_hash AND v_row.id > o_last + 1 THEN
            o_fault := 'missing';
            o_row := o_last + 1;
        ELSIF v_row.hash IS DISTINCT FROM ration.audit_hash_v1(v_row) THEN
            o_fault := 'changed';
            o_row := v_row.id;
        ELSIF v_row.previous IS DISTINCT FROM o_hash THEN
            -- Whoever changed the row before has hashed it anew: the row behind it still has the hash that it had.
            o_fault := 'changed';
            o_row := o_last;
        END IF;
        EXIT WHEN o_fault IS NOT NULL;
        o_rows := o_rows + 1;
        o_last := v_row.id;
        o_hash := v_row.hash;
    END LOOP;
    o_done := o_fault IS NULL AND o_rows < p_rows;
    IF NOT o_done THEN
        RETURN;
    END IF;
    SELECT h.* INTO v_head FROM ration.audit_head AS h;
    CASE
        WHEN v_head.id IS NULL THEN
            o_fault := 'headless';
            o_row := o_last;
        WHEN v_head.id > o_last THEN
            o_fault := 'cut';
            o_row := o_last + 1;
        WHEN v_head.id < o_last THEN
            o_fault := 'added';
            o_row := v_head.id + 1;
        WHEN v_head.hash <> o_hash THEN
            o_fault := 'changed';
            o_row := o_last;
        ELSE NULL;
    END CASE;
END $$;
