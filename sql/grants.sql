-- Who may do what. Everything else is the owner's alone.
--   ration_service   the process: runs the decision functions, reads policies, slots and outcomes of operation ids
--   ration_operator  people on duty: what readers see, and upkeep by hand. Policies are changed over HTTP, where they are checked
--   ration_reader    dashboards: reads policies, their history and what every key has used
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ration FROM PUBLIC;
GRANT USAGE ON SCHEMA ration TO ration_service, ration_operator, ration_reader;

GRANT SELECT ON ration.schema_version, ration.policy_set, ration.policy, ration.policy_version, ration.audit, ration.state_loss
    TO ration_service, ration_operator, ration_reader;
GRANT SELECT ON ration.operation, ration.slot_parent, ration.slot TO ration_service;
GRANT SELECT ON ration.bucket_now, ration.window_now, ration.log_now, ration.slot_now
    TO ration_service, ration_operator, ration_reader;
-- Called by the views with the rights of whoever looks.
GRANT EXECUTE ON FUNCTION ration.bucket_key, ration.key_field_v1, ration.key_address_v1, ration.canonical_target_v1,
    ration.fold_case_v1, ration.settled_v1, ration.wait_v1, ration.clock_v1, ration.carry_v1, ration.converted_v1, ration.clamped_v1,
    ration.floor_div_v1, ration.balance_at_v1, ration.window_start_v1, ration.window_at_v1, ration.window_room_v1,
    ration.window_wait_v1, ration.log_live_v1, ration.log_wait_v1, ration.decide_figures_v1, ration.instant_v1
    TO ration_service, ration_operator, ration_reader;

GRANT EXECUTE ON FUNCTION ration.clean_v1, ration.clean_windows_v1, ration.clean_logs_v1, ration.clean_slots_v1,
    ration.clean_slot_parents_v1, ration.clean_operations_v1, ration.sweep_v1, ration.recover_v1
    TO ration_service, ration_operator;
GRANT EXECUTE ON FUNCTION ration.take_v1, ration.take_durable_v1, ration.take_new_v1, ration.take_new_durable_v1,
    ration.decide_v1, ration.settle_v1, ration.release_slot_v1, ration.renew_slot_v1, ration.put_policy_v1, ration.dry_run_v1,
    ration.delete_policy_v1, ration.put_override_v1, ration.remove_override_v1, ration.put_kill_switch_v1,
    ration.remove_kill_switch_v1
    TO ration_service;
GRANT EXECUTE ON FUNCTION ration.expire_v1 TO ration_service, ration_operator;

-- The audit is written by the functions above alone, with their owner's rights; everybody may check it.
GRANT SELECT ON ration.audit_head TO ration_service, ration_operator, ration_reader;
GRANT EXECUTE ON FUNCTION ration.audit_hash_v1, ration.audit_verify_v1 TO ration_service, ration_operator, ration_reader;

-- Instances tell of themselves, and of what shadows saw. Whom a shadow would have denied names accounts: no reader sees it.
GRANT EXECUTE ON FUNCTION ration.confirm_v1, ration.leave_v1, ration.report_shadow_v1 TO ration_service;
GRANT EXECUTE ON FUNCTION ration.clean_instances_v1, ration.clean_shadow_v1 TO ration_service, ration_operator;
GRANT EXECUTE ON FUNCTION ration.instances_v1 TO ration_service, ration_operator, ration_reader;
GRANT SELECT ON ration.shadow_total, ration.shadow_denial TO ration_service, ration_operator;

-- Keys are looked at and set by hand over HTTP, where it is known who asks.
GRANT SELECT ON ration.override, ration.kill_switch TO ration_service;
GRANT EXECUTE ON FUNCTION ration.locate_key_v1, ration.policy_keys_v1, ration.key_figures_v1, ration.reset_bucket_v1, ration.rebase_v1
    TO ration_service;

-- Who holds ration_service can see who may call, not make callers. People on duty see no hash, and can shut a door, not open one.
GRANT SELECT ON ration.token TO ration_service;
GRANT SELECT (id, name, role, scope, created_at, created_by, expires_at, revoked_at) ON ration.token TO ration_operator;
GRANT EXECUTE ON FUNCTION ration.revoke_token_v1 TO ration_operator;
