-- configure_roles_v1: what sessions of the service's role begin with in this database. Role settings in a database are
-- copied neither by CREATE DATABASE … TEMPLATE nor by pg_dump without --create: call it again there, as the owner.
--
-- Units: milliseconds in the settings. Clock: none. Locks: none.
-- SQLSTATE: 42501 the caller may not change the role.
CREATE OR REPLACE FUNCTION ration.configure_roles_v1()
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_setting text;
BEGIN
    FOREACH v_setting IN ARRAY ARRAY[
        -- A statement that waited for a lock must see what the holder left; the functions refuse stricter levels (RN001).
        'default_transaction_isolation = ''read committed''',
        -- The bound of a call. lock_timeout alone starts anew for every holder of a contended row.
        'statement_timeout = ''40ms''',
        'lock_timeout = ''40ms''',
        -- A transaction of the service is one call: a longer one is a fault that would hold back vacuum.
        'idle_in_transaction_session_timeout = ''10s''',
        -- The pinned plans forbid scans by a cost so high that PostgreSQL would compile every one of them: 50 ms a call.
        'jit = off']
    LOOP
        EXECUTE format('ALTER ROLE ration_service IN DATABASE %I SET %s', current_database(), v_setting);
    END LOOP;
END $$;
