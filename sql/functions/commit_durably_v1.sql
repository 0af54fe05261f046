-- commit_durably_v1: makes the running transaction's COMMIT wait for the WAL to be flushed, unless the session asks for
-- more. It is set for the transaction, not for the function: a SET clause is undone before COMMIT.
--
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.commit_durably_v1()
RETURNS void LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END $$;
