package pgstore_test

import (
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// rolesOfRation are all but the owner.
const rolesOfRation = "(VALUES ('ration_service'), ('ration_operator'), ('ration_reader')) AS r (role)"

var grant = regexp.MustCompile(`(?s)GRANT (\w+)(?: \([^)]*\))? ON (?:FUNCTION )?(.+?)\s+TO (.+?);`)

// granted is what sql/grants.sql says, as "role privilege name" each.
func granted(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../sql/grants.sql")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`,\s*`)
	all := map[string]bool{}
	for _, match := range grant.FindAllStringSubmatch(string(text), -1) {
		for _, name := range list.Split(match[2], -1) {
			for _, role := range list.Split(match[3], -1) {
				if name, ok := strings.CutPrefix(name, "ration."); ok {
					all[strings.Join([]string{role, match[1], name}, " ")] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// strings queries a column of text.
func (b *bench) strings(sql string) []string {
	b.Helper()
	rows, err := b.owner.Query(context.Background(), sql)
	if err != nil {
		b.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		b.Fatal(err)
	}
	return all
}

// Every table, view and function × every role × every privilege: they have
// what is granted in one place, and nothing is left of what migrations granted
// before.
func TestRolesHaveWhatIsGrantedAndNoMore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	has := b.strings(`
		SELECT format('%s %s %s', r.role, p.privilege, c.relname) COLLATE "C"
		FROM pg_class AS c, ` + rolesOfRation + `,
		     unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS p (privilege)
		WHERE c.relnamespace = 'ration'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')
		  AND CASE WHEN p.privilege IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES') THEN has_any_column_privilege(r.role, c.oid, p.privilege)
		                                                                           ELSE has_table_privilege(r.role, c.oid, p.privilege) END
		UNION
		SELECT format('%s EXECUTE %s', r.role, f.proname) FROM pg_proc AS f, ` + rolesOfRation + `
		WHERE f.pronamespace = 'ration'::regnamespace AND has_function_privilege(r.role, f.oid, 'EXECUTE')
		UNION
		SELECT format('%s %s %s', r.role, p.privilege, c.relname)
		FROM pg_class AS c, ` + rolesOfRation + `, unnest(ARRAY['USAGE', 'UPDATE', 'SELECT']) AS p (privilege)
		-- Whether a plan has this filter first or last: others than sequences are refused with an error.
		WHERE c.relnamespace = 'ration'::regnamespace AND CASE c.relkind WHEN 'S' THEN has_sequence_privilege(r.role, c.oid, p.privilege) ELSE false END
		ORDER BY 1`)
	if diff := cmp.Diff(granted(t), has); diff != "" {
		t.Errorf("sql/grants.sql (-) and the database (+) differ:\n%s", diff)
	}
	for _, one := range has {
		if privilege := strings.Fields(one)[1]; privilege != "SELECT" && privilege != "EXECUTE" {
			t.Errorf("%s: tables are written by functions alone", one)
		}
	}
}

// A function that a role may run and that writes does it with its owner's
// rights; what everybody may run writes nothing.
func TestWhatRolesMayRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const may = ` FROM pg_proc AS f, ` + rolesOfRation + ` WHERE f.pronamespace = 'ration'::regnamespace AND f.provolatile = 'v'
		AND f.proname NOT IN ('clock_v1', 'instances_v1') -- which read the clock, and write nothing
		AND has_function_privilege(r.role, f.oid, 'EXECUTE')`
	for _, one := range b.strings("SELECT format('%s may run %s', r.role, f.proname)" + may + " AND NOT f.prosecdef") {
		t.Errorf("%s, which can do nothing with that role's rights", one)
	}
	for _, one := range b.strings("SELECT f.proname::text" + may + " AND r.role = 'ration_reader'") {
		t.Errorf("readers may run %s, which writes", one)
	}
	if has := b.strings(`SELECT format('%s may create in %s', r.role, n.nspname) FROM pg_namespace AS n, ` + rolesOfRation + `
		WHERE n.nspname = 'ration' AND has_schema_privilege(r.role, n.oid, 'CREATE')`); len(has) > 0 {
		t.Error(has)
	}
}

// What keeps the audit cannot be written, nor switched off, by any role.
func TestTheAuditIsOutOfReach(t *testing.T) {
	t.Parallel()
	b := audited(t, 2)
	for _, role := range []string{"ration_service", "ration_operator", "ration_reader"} {
		conn := b.as(role)
		may(b, conn, role, "TABLE ration.audit", "TABLE ration.audit_head", "SELECT ration.audit_verify_v1(0, '', 10)")
		mayNot(b, conn, role,
			appendAuditSQL+"(NULL, 1, 'x', 'x', NULL, '', '')", "UPDATE ration.audit SET reason = ''",
			"DELETE FROM ration.audit", "TRUNCATE ration.audit", "DO $$ BEGIN LOCK ration.audit IN EXCLUSIVE MODE; END $$", "SELECT FROM ration.audit FOR UPDATE",
			"UPDATE ration.audit_head SET id = 1", "DELETE FROM ration.audit_head", "INSERT INTO ration.audit_head (only_row, id, hash) VALUES (false, 1, '')",
			"SELECT FROM ration.audit_head FOR UPDATE", "DO $$ BEGIN LOCK ration.audit_head IN EXCLUSIVE MODE; END $$",
			"ALTER TABLE ration.audit DISABLE TRIGGER audit_chain", "ALTER TABLE ration.audit DISABLE TRIGGER ALL", "DROP TRIGGER audit_refuse ON ration.audit",
			"DROP TABLE ration.audit", "SET session_replication_role = replica", "CREATE RULE r AS ON INSERT TO ration.audit DO INSTEAD NOTHING",
			"CREATE OR REPLACE FUNCTION ration.audit_chain_v1() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
			"ALTER FUNCTION ration.audit_hash_v1 RENAME TO other", "DROP FUNCTION ration.audit_refuse_v1 CASCADE",
			"ALTER ROLE "+role+" SUPERUSER")
	}
	if chain := b.verifyAudit(); chain.Rows != 2 {
		t.Errorf("%+v", chain)
	}
}
