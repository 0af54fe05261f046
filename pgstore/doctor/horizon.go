package doctor

// horizonChecks look for what keeps dead row versions from being removed. A hot
// bucket leaves thousands a second; with nothing in their way they are pruned
// within its page.
func horizonChecks() []check {
	return []check{
		// An idle transaction that has only read holds nothing back between its statements.
		reading("transactions", `
			SELECT CASE WHEN age > 10 * @transaction_max THEN 'fault' ELSE 'warning' END,
			       format('session %s (%s%s) has had a transaction open for %s, %s: until it ends, no row version that decisions leave behind is removed',
			              a.pid, a.usename, coalesce(', ' || nullif(a.application_name, ''), ''), date_trunc('second', age), a.state),
			       format('SELECT pg_terminate_backend(%s);', a.pid)
			FROM pg_stat_activity AS a, LATERAL (SELECT clock_timestamp() - a.xact_start) AS x (age)
			WHERE a.pid <> pg_backend_pid() AND a.datname = current_database() AND a.backend_type = 'client backend'
			  AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL) AND age > @transaction_max
			UNION ALL
			SELECT 'warning', format('%s sees only its own sessions: whether others hold back vacuum cannot be told', current_user),
			       format('GRANT pg_monitor TO %I;', current_user)
			WHERE NOT pg_has_role('pg_read_all_stats', 'USAGE')`),
		reading("prepared transactions", `
			SELECT CASE WHEN age > 10 * @transaction_max THEN 'fault' ELSE 'warning' END,
			       format('prepared transaction %L of %s has waited for its end for %s; it holds back vacuum, and its locks, restarts included',
			              p.gid, p.owner, date_trunc('second', age)),
			       format('COMMIT PREPARED %L; or ROLLBACK PREPARED %1$L;', p.gid)
			FROM pg_prepared_xacts AS p, LATERAL (SELECT clock_timestamp() - p.prepared) AS x (age)
			WHERE p.database = current_database() AND age > @transaction_max`),
		reading("replication slots", `
			SELECT CASE WHEN s.wal_status = 'lost' OR kept > 10 * 1024 ^ 3 THEN 'fault' ELSE 'warning' END,
			       format('replication slot %s (%s) is used by nobody; it keeps %s of write-ahead log%s', s.slot_name, s.slot_type,
			              coalesce(pg_size_pretty(kept), 'what it has'), CASE WHEN coalesce(s.xmin, s.catalog_xmin) IS NULL THEN '' ELSE ', and holds back vacuum' END),
			       format('SELECT pg_drop_replication_slot(%L); or start its reader', s.slot_name)
			FROM pg_replication_slots AS s,
			     LATERAL (SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, s.restart_lsn)) AS x (kept)
			WHERE NOT s.active AND NOT s.temporary
			UNION ALL
			SELECT 'warning', format('replication slot %s (%s) holds back vacuum by %s transactions', s.slot_name, s.slot_type, age(coalesce(s.xmin, s.catalog_xmin))),
			       'end the long query on the standby behind it, or turn hot_standby_feedback off there'
			FROM pg_replication_slots AS s WHERE s.active AND age(s.xmin) > 1000000
			UNION ALL
			SELECT 'warning', format('standby %s holds back vacuum by %s transactions (hot_standby_feedback)', r.application_name, age(r.backend_xmin)),
			       'end the long query on that standby, or turn hot_standby_feedback off there'
			FROM pg_stat_replication AS r WHERE age(r.backend_xmin) > 1000000`),
	}
}
