-- audit_chain_v1: the trigger before every INSERT into ration.audit: it appends the row to the chain. The row's id, previous
-- and hash are given here, whatever the statement said of them.
--
-- Answers: the row as number head + 1, with the head's hash as its previous (none, of no bytes, for the first row) and its own.
-- Units: none. Clock: none.
-- Locks: the row of ration.audit_head until the transaction ends: rows are one after the other in the order in which their
--        transactions commit. It is the last lock that a change takes; one that takes more behind it holds the row of
--        ration.policy_set before.
-- SQLSTATE: P0002 the head is gone. Nothing can be changed then before its owner has looked into it.
CREATE OR REPLACE FUNCTION ration.audit_chain_v1()
RETURNS trigger LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    SELECT h.id + 1, h.hash INTO STRICT NEW.id, NEW.previous FROM ration.audit_head AS h FOR UPDATE;
    NEW.hash := ration.audit_hash_v1(NEW);
    UPDATE ration.audit_head SET id = NEW.id, hash = NEW.hash;
    RETURN NEW;
END $$;
