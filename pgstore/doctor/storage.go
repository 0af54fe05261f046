package doctor

// storageChecks compare the tables of state with how migrations made them, and
// look for what is much larger than what it holds.
func storageChecks() []check {
	return []check{
		inSchema(reading("storage", `
			WITH made (name, logged, filled) AS (VALUES -- every other table is logged, and filled up
				('bucket_fast', 'u', '90'), ('window_fast', 'u', '90'), ('log_fast', 'u', '90'), ('incarnation_marker', 'u', '100'),
				('bucket_durable', 'p', '90'), ('window_durable', 'p', '90'), ('log_durable', 'p', '90'), ('slot', 'p', '90'), ('operation', 'p', '90'),
				('instance', 'u', '50'), ('shadow_denial', 'u', '90'), ('shadow_total', 'u', '50')),
			found AS (
				SELECT c.relname AS name, coalesce(m.logged, 'p') AS logged, coalesce(m.filled, '100') AS filled, c.relpersistence,
				       coalesce((SELECT o.option_value FROM pg_options_to_table(c.reloptions) AS o WHERE o.option_name = 'fillfactor'), '100') AS filling
				FROM pg_class AS c LEFT JOIN made AS m ON m.name = c.relname WHERE c.relkind = 'r' AND c.relnamespace = 'ration'::regnamespace)
			SELECT 'fault', format('ration.%s is unlogged: a crash of PostgreSQL empties it', f.name), format('ALTER TABLE ration.%I SET LOGGED;', f.name)
			FROM found AS f WHERE f.logged = 'p' AND f.relpersistence = 'u'
			UNION ALL
			SELECT 'warning', format('ration.%s is logged: every decision on it is written twice', f.name), format('ALTER TABLE ration.%I SET UNLOGGED;', f.name)
			FROM found AS f WHERE f.logged = 'u' AND f.relpersistence = 'p'
			UNION ALL
			SELECT 'warning', format('ration.%s has fillfactor %s, not %s: updates leave their page, and the index grows', f.name, f.filling, f.filled),
			       CASE f.filled WHEN '100' THEN format('ALTER TABLE ration.%I RESET (fillfactor);', f.name)
			                     ELSE format('ALTER TABLE ration.%I SET (fillfactor = %s);', f.name, f.filled) END
			FROM found AS f WHERE f.filled <> f.filling
			UNION ALL
			SELECT 'warning', format('entries of ration.%s are compressed: that costs a batch ten times its time', c.relname),
			       format('ALTER TABLE ration.%I ALTER COLUMN entries SET STORAGE EXTERNAL;', c.relname)
			FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
			WHERE c.relnamespace = 'ration'::regnamespace AND c.relname IN ('log_fast', 'log_durable') AND a.attname = 'entries' AND a.attstorage <> 'e'
			UNION ALL
			SELECT 'fault', format('index %s is not valid', i.indexrelid::regclass::text), format('REINDEX INDEX CONCURRENTLY %s;', i.indexrelid::regclass::text)
			FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid WHERE c.relnamespace = 'ration'::regnamespace AND NOT i.indisvalid`)),
		// Rows of these tables have a fixed width of some 80 bytes.
		reading("bloat", `
			SELECT 'warning', format('ration.%s takes %s for some %s rows: it was much larger once', t.relname, pg_size_pretty(pg_table_size(t.relid)), t.n_live_tup),
			       format('VACUUM FULL ration.%I; while nobody asks for decisions (it holds them up), or pg_repack', t.relname)
			FROM pg_stat_all_tables AS t
			WHERE t.schemaname = 'ration' AND t.relname IN ('bucket_fast', 'bucket_durable', 'window_fast', 'window_durable')
			  AND pg_table_size(t.relid) > 256 * 1024 ^ 2 AND pg_table_size(t.relid) > 10 * 80 * t.n_live_tup`),
		inSchema(reading("losses of fast state", `
			SELECT 'note', format('fast state was lost in a crash %s times, last at %s (UTC), when %s fast policies began anew', count(*),
			                      to_char(to_timestamp(max(l.found_at) / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'),
			                      (array_agg(l.policies_idle + l.policies_empty ORDER BY l.id DESC))[1]),
			       'a policy that must not forget has "durability": "durable"'
			FROM ration.state_loss AS l HAVING count(*) > 0`)),
	}
}
