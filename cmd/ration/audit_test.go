package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestAuditCommands(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	i := serve(t, db)
	environ := []string{"RATION_ADMIN_URL=" + i.admin, "RATION_DATABASE_URL=" + db.ServiceURL()}
	tell(t, nil, []line{
		{call: "audit", out: "Check that the audit is as it was written"},
		{call: "audit verify", code: exitUsage, errs: "RATION_DATABASE_URL is not set"},
		{call: "audit verify --known 7", code: exitUsage, errs: "not a row and its whole hash"},
		{call: "audit verify -o yaml", code: exitUsage, errs: "text or json"},
		{call: "audit list --rows 0", code: exitUsage, errs: "at least 1"},
	})
	tell(t, environ, []line{
		{call: "audit list", out: "ID  AT (UTC)"},
		{call: "audit list -o json", out: `{"rows":[]}`},
		{call: "audit verify", out: "no rows yet"},
		{call: "audit verify --known 1:" + strings.Repeat("ff", 32), code: exitFailed, errs: "row 1 is missing"},
		{call: "policy put search - --create", stdin: slow("search", 10, "")},
		{call: "policy put search - --if-match v1 --reason dearer", stdin: slow("search", 5, "")},
		{call: "audit list", out: "policy.changed  search  v1→v2    dearer"},
		{call: "audit list --oldest --rows 1", out: "policy.created  search  v1"},
		{call: "audit list --action policy.created -o json", out: `"versionAfter":1`},
		{call: "audit list --actor nobody -o json", out: `{"rows":[]}`},
	})
	_, out, _ := command(t, environ, "", "audit", "verify")
	known := regexp.MustCompile(`2:[0-9a-f]{64}`).FindString(out)
	if !strings.HasPrefix(out, "2 rows, whole.") || known == "" {
		t.Fatalf("verify says %q", out)
	}
	tell(t, environ, []line{
		{call: "audit verify --known " + known, out: "2 rows, whole"},
		{call: "audit verify -o json", out: `"known":"` + known + `"`},
	})

	owner := db.Owner()
	for _, statement := range []string{
		"ALTER TABLE ration.audit DISABLE TRIGGER ALL",
		"UPDATE ration.audit SET reason = 'cheaper' WHERE id = 2",
	} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	tell(t, environ, []line{
		{call: "audit verify", code: exitFailed, errs: "row 2 is not as it was written (changed); 1 rows before it are whole"},
		{call: "audit verify -o json", code: exitFailed, out: `"fault":"changed","row":2`},
	})
	// All of it written anew is a chain as good as any: only who remembers knows.
	for _, statement := range []string{
		"UPDATE ration.audit AS a SET hash = ration.audit_hash_v1(a) WHERE id = 2",
		"UPDATE ration.audit_head SET hash = (SELECT a.hash FROM ration.audit AS a WHERE a.id = 2)",
	} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	tell(t, environ, []line{
		{call: "audit verify", out: "2 rows, whole"},
		{call: "audit verify --known " + known, code: exitFailed, errs: "row 2 is not as it was written (changed); the 2 rows are a whole chain, but another one"},
	})
}
