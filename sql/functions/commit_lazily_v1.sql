-- commit_lazily_v1: makes the running transaction's COMMIT wait for no disk, where the session asks for no more than its own:
-- what is counted beside fast state, or done again when it is lost, is not worth a wait. commit_durably_v1 takes it back.
--
-- Units: none. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.commit_lazily_v1()
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF current_setting('synchronous_commit') = 'on' THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
END $$;
