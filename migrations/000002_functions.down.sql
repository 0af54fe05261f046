-- The roles stay: other databases of the cluster may use them.
DO $$
BEGIN
    EXECUTE format('ALTER ROLE ration_service IN DATABASE %I RESET ALL', current_database());
END $$;
REVOKE ALL ON SCHEMA ration FROM ration_service, ration_operator, ration_reader;
REVOKE ALL ON ALL TABLES IN SCHEMA ration FROM ration_service, ration_operator, ration_reader;
DROP VIEW ration.bucket_now;
DROP FUNCTION ration.configure_roles_v1, ration.bucket_key, ration.canonical_target_v1, ration.fold_case_v1,
    ration.key_address_v1, ration.key_field_v1, ration.put_policy_v1, ration.recover_v1, ration.clean_v1,
    ration.take_new_durable_v1, ration.take_new_v1, ration.take_durable_v1, ration.take_v1, ration.balance_at_v1,
    ration.carry_v1, ration.commit_durably_v1, ration.guard_v1, ration.use_test_clock_v1, ration.clock_v1,
    ration.wait_v1, ration.settled_v1;
