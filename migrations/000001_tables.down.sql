DROP TABLE ration.audit, ration.bucket_durable, ration.bucket_fast, ration.policy, ration.policy_version,
           ration.state_loss, ration.incarnation_marker, ration.policy_set, ration.schema_version;
DROP DOMAIN ration.policy_name;
