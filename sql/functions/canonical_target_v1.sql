-- canonical_target_v1: the one form of all spellings of an account that a sign-in may aim at: white space trimmed, NFKC,
-- case-folded. policy.CanonicalTarget gives the same; characters newer than the server's Unicode are left as they are.
--
-- Units: none. Clock: none. Locks: none.
-- SQLSTATE: 42601 the database's encoding is not UTF8.
CREATE OR REPLACE FUNCTION ration.canonical_target_v1(p_text text)
RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- Unicode's White_Space property.
    v_space constant text := U&'\0009\000A\000B\000C\000D\0020\0085\00A0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200A'
                             '\2028\2029\202F\205F\3000';
    v_next  text;
BEGIN
    p_text := btrim(p_text, v_space);
    -- One pass is not stable: NFKC can bring forth a capital letter or a space, and folding can undo NFKC. Eight is margin.
    FOR i IN 1 .. 8 LOOP
        v_next := btrim(normalize(ration.fold_case_v1(normalize(p_text, NFKC)), NFKC), v_space);
        EXIT WHEN v_next = p_text;
        p_text := v_next;
    END LOOP;
    RETURN p_text;
END $$;
