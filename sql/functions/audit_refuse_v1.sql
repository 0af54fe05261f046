-- audit_refuse_v1: the trigger before every UPDATE, DELETE and TRUNCATE of ration.audit, and before DELETE and TRUNCATE of its
-- head: it refuses them, the owner's too. Roles of the service lack the privileges already.
--
-- Units: none. Clock: none. Locks: none.
-- SQLSTATE: 42501 always.
CREATE OR REPLACE FUNCTION ration.audit_refuse_v1()
RETURNS trigger LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = format('%s of ration.%s: the audit is only ever added to', TG_OP, TG_TABLE_NAME);
END $$;
