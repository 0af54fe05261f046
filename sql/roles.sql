-- The roles belong to the whole cluster, so another database may have made them, or may be making them now.
DO $$
DECLARE
    v_role text;
BEGIN
    FOREACH v_role IN ARRAY ARRAY['ration_service LOGIN', 'ration_operator NOLOGIN', 'ration_reader NOLOGIN'] LOOP
        BEGIN
            IF to_regrole(split_part(v_role, ' ', 1)) IS NULL THEN
                EXECUTE 'CREATE ROLE ' || v_role;
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;  -- the other migration was faster
        END;
    END LOOP;
END $$;
