-- The functions of the versions before.

UPDATE ration.schema_version SET minor = 1;

REVOKE SELECT ON ration.audit_head FROM ration_service, ration_operator, ration_reader;
REVOKE SELECT ON ration.shadow_total, ration.shadow_denial FROM ration_service, ration_operator;

DROP TRIGGER audit_chain ON ration.audit;
DROP TRIGGER audit_refuse ON ration.audit;
DROP TRIGGER audit_refuse ON ration.audit_head;
DELETE FROM ration.audit_head;
ALTER TABLE ration.audit ALTER COLUMN previous DROP NOT NULL, ALTER COLUMN hash DROP NOT NULL, ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY;
SELECT setval(pg_get_serial_sequence('ration.audit', 'id'), coalesce(max(a.id), 0) + 1, false) FROM ration.audit AS a;

DROP FUNCTION ration.reset_bucket_v1, ration.report_shadow_v1, ration.rebase_v1, ration.policy_keys_v1, ration.state_table_v1,
    ration.open_sweep_v1, ration.log_rebased_v1, ration.locate_key_v1, ration.leave_v1, ration.key_figures_v1,
    ration.instances_v1, ration.confirm_v1, ration.close_sweep_v1, ration.clean_shadow_v1, ration.clean_instances_v1,
    ration.audit_verify_v1, ration.audit_refuse_v1, ration.audit_chain_v1, ration.audit_hash_v1;
