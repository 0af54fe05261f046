package migrations_test

import (
	"testing"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/migrations"
)

// What the audit had before it was a chain is chained as it stands, numbers
// that rolled back changes have left out included; going down and up again
// chains it anew.
func TestTheAuditSoFarIsChained(t *testing.T) {
	t.Parallel()
	db := dbtest.Empty(t)
	if err := firstSteps(t, 4).Up(t.Context(), db.OwnerURL()); err != nil {
		t.Fatal(err)
	}
	owner := connect(t, db.OwnerURL())
	add := func() {
		t.Helper()
		if _, err := owner.Exec(t.Context(), "INSERT INTO ration.audit (at, actor, action, reason, request_id) VALUES (1, 'ana', 'policy.created', '', '')"); err != nil {
			t.Fatal(err)
		}
	}
	add()
	if _, err := owner.Exec(t.Context(), "SELECT nextval('ration.audit_id_seq')"); err != nil { // as a change that was rolled back
		t.Fatal(err)
	}
	add()
	check := func(want string) {
		t.Helper()
		got := one[string](t, db, `SELECT format('%s rows to %s, head %s, %s%s', v.o_rows, v.o_last, h.id, coalesce(v.o_fault, 'whole'), ' ' || v.o_row)
			FROM ration.audit_verify_v1(0, '', 1000) AS v, ration.audit_head AS h`)
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	up := func() {
		t.Helper()
		if err := migrations.Up(t.Context(), db.OwnerURL()); err != nil {
			t.Fatal(err)
		}
	}
	up()
	check("2 rows to 3, head 3, whole")
	add()
	check("3 rows to 4, head 4, whole")
	if err := migrations.DownOne(t.Context(), db.OwnerURL()); err != nil {
		t.Fatal(err)
	}
	add()
	up()
	check("4 rows to 5, head 5, whole")
}
