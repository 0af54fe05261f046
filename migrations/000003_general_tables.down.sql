DROP TABLE ration.operation, ration.slot, ration.slot_parent, ration.log_durable, ration.log_fast, ration.window_durable, ration.window_fast;
DROP TYPE ration.settled_part, ration.operation_part, ration.log_entries;
ALTER TABLE ration.policy DROP COLUMN mode, DROP COLUMN span, DROP COLUMN strict, DROP COLUMN algorithm;
ALTER TABLE ration.policy_version
    DROP CONSTRAINT policy_version_idle,
    ADD CHECK (idle_balance BETWEEN -capacity_units AND capacity_units);
