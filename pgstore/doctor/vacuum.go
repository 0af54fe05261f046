package doctor

// vacuumChecks look whether dead rows are removed, and transaction ids frozen.
func vacuumChecks() []check {
	return []check{
		reading("autovacuum", `
			SELECT 'fault', format('%s is off: tables grow with every decision, until the server stops for lack of transaction ids', s.name),
			       format('ALTER SYSTEM SET %s = on; SELECT pg_reload_conf();', s.name)
			FROM pg_settings AS s WHERE s.name IN ('autovacuum', 'track_counts') AND s.setting = 'off'
			UNION ALL
			SELECT 'fault', format('autovacuum is off for ration.%s', c.relname), format('ALTER TABLE ration.%I RESET (autovacuum_enabled);', c.relname)
			FROM pg_class AS c, unnest(c.reloptions) AS o
			WHERE c.relnamespace = to_regnamespace('ration') AND c.relkind = 'r' AND o ~* '^autovacuum_enabled=(f|n|of|0)'`),
		reading("dead rows", `
			SELECT 'warning',
			       format('ration.%s has %s dead rows beside %s live ones; autovacuum was there %s', t.relname, t.n_dead_tup, t.n_live_tup,
			              coalesce('last at ' || to_char(t.last_autovacuum AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' (UTC)', 'never')),
			       format('VACUUM (ANALYZE) ration.%I; if it comes back: ALTER TABLE ration.%1$I SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);', t.relname)
			FROM pg_stat_all_tables AS t
			-- Twice what makes autovacuum come as PostgreSQL is delivered, and more than a moment's worth.
			WHERE t.schemaname = 'ration' AND t.n_dead_tup > 10000 + 0.4 * t.n_live_tup`),
		reading("transaction ids", `
			SELECT CASE WHEN used > 1500000000 THEN 'fault' ELSE 'warning' END,
			       format('database %s has used %s of the 2147 million %s that there are', datname, used / 1000000, what),
			       'look for what holds back vacuum (above), then VACUUM (FREEZE) the oldest tables of that database'
			FROM (SELECT d.datname, age(d.datfrozenxid), 'transaction ids', current_setting('autovacuum_freeze_max_age') FROM pg_database AS d
			      UNION ALL
			      SELECT d.datname, mxid_age(d.datminmxid), 'multixact ids', current_setting('autovacuum_multixact_freeze_max_age') FROM pg_database AS d) AS x (datname, used, what, bound)
			WHERE used > 2 * bound::bigint OR used > 1500000000`),
	}
}
