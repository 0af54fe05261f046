-- list_v1: whether an argument is a list of so many values: one dimension counted from 1, without NULL.
--
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.list_v1(p_values anyarray, p_length int)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT pg_catalog.cardinality(p_values) = p_length AND coalesce(pg_catalog.array_upper(p_values, 1), 0) = p_length
           AND coalesce(pg_catalog.array_ndims(p_values), 1) = 1
           AND pg_catalog.array_position(p_values, NULL) IS NULL
$$;
