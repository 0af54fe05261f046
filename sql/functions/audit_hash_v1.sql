-- audit_hash_v1: the hash of an audit row, over every column but the hash itself: so over the hash of the row before, too.
--
-- Arguments: the row. Answers: SHA-256 of 'ration.audit v1' and then, for each column in the order below, its length in
--        bytes (4 bytes, the highest first; -1 for NULL) and its text in UTF-8: numbers in decimal, JSON as it is stored.
--        Of the previous hash it takes the bytes themselves.
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.audit_hash_v1(p_row ration.audit)
RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT sha256('ration.audit v1'::bytea
                  || string_agg(coalesce(int4send(length(f.value)) || f.value, int4send(-1)), ''::bytea ORDER BY f.place))
    FROM unnest(ARRAY[
        convert_to((p_row).id::text, 'UTF8'), convert_to((p_row).at::text, 'UTF8'),
        convert_to((p_row).actor, 'UTF8'), convert_to((p_row).role, 'UTF8'), convert_to((p_row).action, 'UTF8'),
        convert_to((p_row).policy, 'UTF8'),
        convert_to((p_row).version_before::text, 'UTF8'), convert_to((p_row).version_after::text, 'UTF8'),
        convert_to((p_row).before::text, 'UTF8'), convert_to((p_row).after::text, 'UTF8'),
        convert_to((p_row).reason, 'UTF8'), convert_to((p_row).request_id, 'UTF8'),
        convert_to((p_row).settled::text, 'UTF8'), convert_to((p_row).clamped::text, 'UTF8'),
        (p_row).previous]) WITH ORDINALITY AS f (value, place);
END;
