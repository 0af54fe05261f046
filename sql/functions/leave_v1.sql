-- leave_v1: an instance of the service ends in good order: nobody waits for it any more, and it is listed no longer.
--
-- Answers: whether it was listed.
-- Units: none. Clock: none. Locks: the instance's row. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.leave_v1(p_id uuid)
RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    DELETE FROM ration.instance AS i WHERE i.id = p_id;
    RETURN FOUND;
END $$;
