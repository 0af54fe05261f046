-- The functions of the versions before.

UPDATE ration.schema_version SET minor = 1;
