-- advisory_key_v1: the number by which a key's or an operation's advisory lock is known: its first 64 bits.
-- Both paths stand before the same locks.
--
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.advisory_key_v1(p_key uuid)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ('x' || left(replace(p_key::text, '-', ''), 16))::bit(64)::bigint;
