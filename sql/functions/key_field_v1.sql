-- key_field_v1: one field of a key's encoding: its length as four bytes, most significant first, then its bytes.
--
-- Units: bytes. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.key_field_v1(p_field bytea)
RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN int4send(length(p_field)) || p_field;
