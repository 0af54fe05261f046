package doctor

// durabilityChecks look whether what is acknowledged stays.
func durabilityChecks() []check {
	return []check{
		reading("commit settings", `
			SELECT 'fault', format('%s is off: a crash of the machine may lose or spoil any table, durable policies and the audit included', s.name),
			       format('ALTER SYSTEM SET %s = on; SELECT pg_reload_conf();', s.name)
			FROM pg_settings AS s WHERE s.name IN ('fsync', 'full_page_writes') AND s.setting = 'off'
			UNION ALL
			SELECT 'warning', 'synchronous_commit is off: decisions of durable policies turn it on for themselves, but changes of policies may be lost in a crash',
			       'ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf();'
			WHERE current_setting('synchronous_commit') = 'off'
			UNION ALL
			SELECT 'fault', 'this server is a standby: it can decide nothing', 'let RATION_DATABASE_URL name the primary (target_session_attrs=read-write)'
			WHERE pg_is_in_recovery()`),
		inSchema(reading("standbys", `
			WITH durable AS (
				SELECT count(*) AS policies FROM ration.policy AS p WHERE p.durability = 'durable' AND p.mode <> 'deleted'),
			standby AS (
				SELECT count(*) FILTER (WHERE r.sync_state IN ('sync', 'quorum')) AS synchronous, count(*) AS streaming
				FROM pg_stat_replication AS r WHERE r.state = 'streaming')
			SELECT 'warning', format('%s durable policies, and no synchronous standby: their charges survive a crash, not the loss of this server', d.policies),
			       'set synchronous_standby_names to standbys that stream, best to ANY 1 of two'
			FROM durable AS d WHERE d.policies > 0 AND current_setting('synchronous_standby_names') = ''
			UNION ALL
			SELECT 'fault', format('synchronous_standby_names is %L, and no such standby streams: every commit of a durable policy waits for it', current_setting('synchronous_standby_names')),
			       'bring the standby back, or ALTER SYSTEM SET synchronous_standby_names = ''''; SELECT pg_reload_conf();'
			FROM standby AS s
			WHERE current_setting('synchronous_standby_names') <> '' AND current_setting('synchronous_commit') NOT IN ('off', 'local')
			  AND s.synchronous = 0 AND pg_has_role('pg_read_all_stats', 'USAGE') AND NOT pg_is_in_recovery()`)),
	}
}
