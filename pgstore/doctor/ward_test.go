package doctor_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/migrations"
	"github.com/rationhq/ration/pgstore/doctor"
)

// ward is a database that is examined, with its owner's hands.
type ward struct {
	*testing.T

	db    *dbtest.DB
	owner *pgx.Conn
}

func newWard(t *testing.T, db *dbtest.DB) *ward {
	t.Helper()
	return &ward{T: t, db: db, owner: connect(t, db.OwnerURL())}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // its server may have been ended
	return conn
}

// exec runs statements as the owner, each a transaction, in which they are
// told apart by their semicolons.
func (w *ward) exec(sql string) {
	w.Helper()
	for statement := range strings.SplitSeq(sql, ";") {
		if _, err := w.owner.Exec(w.Context(), statement); err != nil {
			w.Fatalf("%s: %v", statement, err)
		}
	}
}

// await asks until the server says true: it reloads its configuration when it
// comes to it.
func (w *ward) await(question string) {
	w.Helper()
	for done := false; !done; {
		conn := connect(w.T, w.db.OwnerURL())
		if err := conn.QueryRow(w.Context(), question).Scan(&done); err != nil {
			w.Fatalf("%s: %v", question, err)
		}
		_ = conn.Close(w.Context())
	}
}

// config is that of an instance that needs little.
func (w *ward) config() doctor.Config {
	return doctor.Config{URL: w.db.OwnerURL(), Migrations: migrations.Latest(), Connections: 10}
}

func (w *ward) examine(config doctor.Config) *doctor.Report {
	w.Helper()
	report, err := doctor.Examine(w.Context(), config)
	if err != nil {
		w.Fatal(err)
	}
	return report
}

// found gives what a report has that an earlier one had not.
func found(report, before *doctor.Report) []doctor.Finding {
	var all []doctor.Finding
	for _, f := range report.Findings {
		if !slices.Contains(before.Findings, f) {
			all = append(all, f)
		}
	}
	return all
}

// expect holds what came up to one finding, and gives it.
func (w *ward) expect(config doctor.Config, before *doctor.Report, check string, severity doctor.Severity, says string) doctor.Finding {
	w.Helper()
	all := found(w.examine(config), before)
	if len(all) != 1 || all[0].Check != check || all[0].Severity != severity || !strings.Contains(all[0].Found, says) {
		w.Errorf("found %q, want one %s of %s that says %q", all, severity, check, says)
		return doctor.Finding{}
	}
	return all[0]
}

// mended runs a finding's mend, up to its last statement, and wants it gone.
func (w *ward) mended(config doctor.Config, before *doctor.Report, f doctor.Finding) {
	w.Helper()
	statements, _, ok := cutLast(f.Mend, ";")
	if !ok {
		w.Errorf("%q: there is nothing to run in %q", f.Found, f.Mend)
		return
	}
	w.exec(statements)
	if all := found(w.examine(config), before); len(all) > 0 {
		w.Errorf("after %s: %q", f.Mend, all)
	}
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}
