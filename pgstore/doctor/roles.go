package doctor

// roleChecks look whether the roles can do what they have to, and no more.
func roleChecks() []check {
	return []check{
		reading("role settings", `
			SELECT w.severity,
			       format('sessions of ration_service begin with %s in this database: %s', CASE WHEN s.value IS NULL THEN 'no ' || w.name ELSE w.name || ' = ' || s.value END, w.why),
			       'SELECT ration.configure_roles_v1(); as the owner'
			FROM (VALUES ('default_transaction_isolation', 'read committed', 'fault', 'stored functions refuse stricter levels'),
			             ('statement_timeout', NULL, 'fault', 'nothing bounds a call'),
			             ('lock_timeout', NULL, 'warning', 'nothing bounds the wait for a row'),
			             ('idle_in_transaction_session_timeout', NULL, 'warning', 'a session that hangs holds back vacuum'),
			             ('jit', 'off', 'warning', 'PostgreSQL compiles plans, 50 ms a call')) AS w (name, wanted, severity, why)
			LEFT JOIN (SELECT split_part(o, '=', 1), substr(o, strpos(o, '=') + 1)
			           FROM pg_db_role_setting AS r CROSS JOIN LATERAL unnest(r.setconfig) AS o
			           WHERE r.setrole = to_regrole('ration_service') AND r.setdatabase = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
			          ) AS s (name, value) USING (name)
			WHERE s.value IS NULL OR s.value <> w.wanted OR w.wanted IS NULL AND s.value IN ('0', '0ms', '0s')
			ORDER BY w.name`),
		reading("roles", `
			SELECT 'fault', format('there is no role %s', w.name), 'ration migrate up, as the owner'
			FROM unnest(ARRAY['ration_service', 'ration_operator', 'ration_reader']) AS w (name) WHERE to_regrole(w.name) IS NULL
			UNION ALL
			SELECT 'fault', format('%s may do everything: it could rewrite the audit', r.rolname),
			       format('ALTER ROLE %I NOSUPERUSER NOCREATEROLE NOBYPASSRLS;', r.rolname)
			FROM pg_roles AS r WHERE r.rolname IN ('ration_service', 'ration_operator', 'ration_reader') AND (r.rolsuper OR r.rolcreaterole)
			UNION ALL
			SELECT 'fault', format('%s is a member of %s, the owner of the schema: it could rewrite the audit', r.rolname, n.nspowner::regrole),
			       format('REVOKE %s FROM %I;', n.nspowner::regrole, r.rolname)
			FROM pg_roles AS r, pg_namespace AS n
			WHERE n.nspname = 'ration' AND r.rolname IN ('ration_service', 'ration_operator', 'ration_reader') AND NOT r.rolsuper AND pg_has_role(r.oid, n.nspowner, 'MEMBER')`),
		reading("grants", `
			SELECT 'fault', format('%s may %s ration.%s: only stored functions write', CASE a.grantee WHEN 0 THEN 'everybody' ELSE a.grantee::regrole::text END,
			                       lower(a.privilege_type), c.relname),
			       format('REVOKE %s ON ration.%I FROM %s;', a.privilege_type, c.relname, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
			FROM pg_class AS c, aclexplode(c.relacl) AS a
			WHERE c.relnamespace = to_regnamespace('ration') AND a.grantee <> c.relowner AND a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER')
			UNION ALL
			SELECT 'fault', format('everybody may call %s functions of schema ration', count(*)), 'REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ration FROM PUBLIC;'
			FROM pg_proc AS p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
			WHERE p.pronamespace = to_regnamespace('ration') AND a.grantee = 0 HAVING count(*) > 0
			UNION ALL
			SELECT 'fault', format('ration_service may not %s: privileges were left out of a restore', w.what),
			       'restore with privileges (pg_dump without --no-privileges), or take them from sql/grants.sql of this release'
			FROM (VALUES ('use the schema', has_schema_privilege(to_regrole('ration_service'), to_regnamespace('ration'), 'USAGE')),
			             ('read policies', has_table_privilege(to_regrole('ration_service'), to_regclass('ration.policy'), 'SELECT')),
			             ('call its functions', NOT EXISTS (SELECT FROM pg_proc AS p WHERE p.pronamespace = to_regnamespace('ration')
			                 AND p.proname IN ('take_v1', 'take_new_v1', 'take_durable_v1', 'take_new_durable_v1', 'decide_v1', 'settle_v1', 'put_policy_v1', 'recover_v1')
			                 AND NOT has_function_privilege(to_regrole('ration_service'), p.oid, 'EXECUTE')))) AS w (what, may)
			WHERE NOT w.may`),
	}
}
