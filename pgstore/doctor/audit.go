package doctor

// auditChecks look at the newest part of the audit; `ration audit verify` walks
// all of it.
func auditChecks() []check {
	return []check{
		inSchema(reading("audit", `
			SELECT 'fault', format('trigger %s of %s is off: the audit can be written around it', t.tgname, t.tgrelid::regclass::text),
			       format('ALTER TABLE %s ENABLE TRIGGER %I; then ration audit verify', t.tgrelid::regclass::text, t.tgname)
			FROM pg_trigger AS t
			WHERE t.tgrelid IN ('ration.audit'::regclass, 'ration.audit_head'::regclass) AND t.tgname IN ('audit_chain', 'audit_refuse') AND t.tgenabled NOT IN ('O', 'A')
			UNION ALL
			SELECT 'fault', format('%s of the triggers that keep the audit are gone', 3 - count(*)), 'ration audit verify, and find out who did it; a restore of schema and data brings them back'
			FROM pg_trigger AS t WHERE t.tgrelid IN ('ration.audit'::regclass, 'ration.audit_head'::regclass) AND t.tgname IN ('audit_chain', 'audit_refuse')
			HAVING count(*) < 3
			UNION ALL
			SELECT 'fault', format('the audit is not whole: row %s is %s', v.o_row, v.o_fault), 'ration audit verify tells from which row on; compare with a backup'
			FROM (SELECT coalesce(max(a.id), 0) FROM ration.audit AS a WHERE a.id <= (SELECT h.id - 900 FROM ration.audit_head AS h)) AS b (id)
			LEFT JOIN ration.audit AS a ON a.id = b.id,
			LATERAL ration.audit_verify_v1(b.id, coalesce(a.hash, ''), 1000) AS v
			WHERE v.o_fault IS NOT NULL`)),
	}
}
