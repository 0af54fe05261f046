-- key_address_v1: name and value of an address in a key's encoding: 'ip/' with the prefix length, and the 4 or 16 bytes
-- of the address with all later bits zero. An IPv4-mapped IPv6 address is taken as the IPv4 address that it is.
--
-- Units: prefix lengths in bits. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.key_address_v1(p_address inet, p_bits_v4 int, p_bits_v6 int, OUT name text, OUT value bytea)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_address inet := set_masklen(p_address, CASE family(p_address) WHEN 4 THEN 32 ELSE 128 END);
    v_bits    int;
BEGIN
    IF v_address << inet '::ffff:0:0/96' THEN
        v_address := inet '0.0.0.0' + (v_address - inet '::ffff:0:0');
    END IF;
    v_bits := CASE family(v_address) WHEN 4 THEN p_bits_v4 ELSE p_bits_v6 END;
    name := 'ip/' || v_bits;
    -- inet_send gives family, bits, kind and length in one byte each, then the address.
    value := substr(inet_send(network(set_masklen(v_address, v_bits))::inet), 5);
END $$;
