DROP TABLE ration.operation, ration.slot, ration.slot_parent, ration.log_durable, ration.log_fast, ration.window_durable, ration.window_fast;
DROP TYPE ration.settled_part, ration.operation_part, ration.log_entries;
ALTER TABLE ration.policy DROP COLUMN mode, DROP COLUMN span, DROP COLUMN strict, DROP COLUMN algorithm;
