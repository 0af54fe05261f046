package doctor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/migrations"
	"github.com/rationhq/ration/pgstore/doctor"
)

// Each bad state that can be made by a statement is found, and its own mend
// takes it away.
func TestWhatIsWrongIsFoundAndMended(t *testing.T) {
	t.Parallel()
	w := newWard(t, dbtest.New(t))
	config := w.config()
	before := w.examine(config)
	const fixed = "" // the mend is none that a test could run
	for _, test := range []struct {
		check    string
		severity doctor.Severity
		makes    string
		says     string
		mend     bool
		undo     string
	}{
		{"autovacuum", doctor.Fault, "ALTER TABLE ration.bucket_fast SET (autovacuum_enabled = off)", "autovacuum is off for ration.bucket_fast", true, fixed},
		{"storage", doctor.Warning, "ALTER TABLE ration.bucket_durable RESET (fillfactor)", "ration.bucket_durable has fillfactor 100, not 90", true, fixed},
		{"storage", doctor.Warning, "ALTER TABLE ration.policy SET (fillfactor = 10)", "ration.policy has fillfactor 10, not 100", true, fixed},
		{"storage", doctor.Warning, "ALTER TABLE ration.window_fast SET LOGGED", "ration.window_fast is logged", true, fixed},
		{"storage", doctor.Fault, "ALTER TABLE ration.bucket_durable SET UNLOGGED", "ration.bucket_durable is unlogged", true, fixed},
		{"storage", doctor.Warning, "ALTER TABLE ration.log_fast ALTER COLUMN entries SET STORAGE EXTENDED", "entries of ration.log_fast are compressed", true, fixed},
		{"grants", doctor.Fault, "GRANT INSERT ON ration.audit TO ration_operator", "ration_operator may insert ration.audit", true, fixed},
		{"grants", doctor.Fault, "GRANT DELETE ON ration.policy TO PUBLIC", "everybody may delete ration.policy", true, fixed},
		{"grants", doctor.Fault, "GRANT EXECUTE ON FUNCTION ration.take_v1 TO PUBLIC", "everybody may call 1 functions", true, fixed},
		{"grants", doctor.Fault, "REVOKE EXECUTE ON FUNCTION ration.take_v1 FROM ration_service", "ration_service may not call its functions", false, "GRANT EXECUTE ON FUNCTION ration.take_v1 TO ration_service"},
		{"audit", doctor.Fault, "ALTER TABLE ration.audit DISABLE TRIGGER audit_chain", "trigger audit_chain of ration.audit is off", true, fixed},
		{
			"dead rows", doctor.Warning, "INSERT INTO ration.carried SELECT n, 1, 1, 1 FROM generate_series(1, 12000) AS n; DELETE FROM ration.carried; SELECT pg_stat_force_next_flush()",
			"ration.carried has 12000 dead rows beside 0 live ones", false, "VACUUM ration.carried; SELECT pg_stat_force_next_flush()",
		},
		{"schema", doctor.Fault, "UPDATE ration.schema_migrations SET dirty = true", "broke off", false, "UPDATE ration.schema_migrations SET dirty = false"},
		{"schema", doctor.Note, "UPDATE ration.schema_migrations SET version = version + 1", "of which this program knows", false, "UPDATE ration.schema_migrations SET version = version - 1"},
		{"schema", doctor.Fault, "UPDATE ration.schema_version SET major = 2", "the schema is version 2.", false, "UPDATE ration.schema_version SET major = 1"},
		{
			"losses of fast state", doctor.Note, "INSERT INTO ration.state_loss (found_at, lost_incarnation, policies_idle, new_incarnation, policies_empty) VALUES (1, gen_random_uuid(), 3, gen_random_uuid(), 1)",
			"lost in a crash 1 times, last at 1970-01-01 00:00:00 (UTC), when 4 fast policies began anew", false, "DELETE FROM ration.state_loss",
		},
	} {
		w.exec(test.makes)
		f := w.expect(config, before, test.check, test.severity, test.says)
		switch {
		case test.mend:
			w.mended(config, before, f)
		default:
			w.exec(test.undo)
		}
	}
	if all := found(w.examine(config), before); len(all) > 0 {
		t.Errorf("all is undone, and found is %q", all)
	}
}

// A restore or a clone leaves out what sessions of the service begin with.
func TestRoleSettings(t *testing.T) {
	t.Parallel()
	w := newWard(t, dbtest.New(t))
	config := w.config()
	before := w.examine(config)
	of := "ALTER ROLE ration_service IN DATABASE " + w.db.Name
	w.exec(of + " RESET ALL")
	all := found(w.examine(config), before)
	if len(all) != 5 || all[0].Check != "role settings" || all[0].Severity != doctor.Fault || !strings.Contains(all[0].Found, "no default_transaction_isolation") {
		t.Errorf("found %q", all)
	}
	w.mended(config, before, all[0])
	for setting, says := range map[string]string{
		"default_transaction_isolation = 'serializable'": "default_transaction_isolation = serializable",
		"jit = on":              "jit = on",
		"statement_timeout = 0": "statement_timeout = 0",
	} {
		w.exec(of + " SET " + setting)
		all := found(w.examine(config), before)
		if len(all) != 1 || !strings.Contains(all[0].Found, says) {
			t.Errorf("%s: found %q", setting, all)
			continue
		}
		w.mended(config, before, all[0])
	}
}

func TestATamperedAuditIsFound(t *testing.T) {
	t.Parallel()
	w := newWard(t, dbtest.New(t))
	before := w.examine(w.config())
	for range 3 {
		w.exec("INSERT INTO ration.audit (at, actor, action, reason, request_id) VALUES (1, 'ana', 'test.done', '', '')")
	}
	if all := found(w.examine(w.config()), before); len(all) > 0 {
		t.Errorf("found %q", all)
	}
	w.exec("ALTER TABLE ration.audit DISABLE TRIGGER audit_refuse; UPDATE ration.audit SET reason = 'other' WHERE id = 2; ALTER TABLE ration.audit ENABLE TRIGGER audit_refuse")
	w.expect(w.config(), before, "audit", doctor.Fault, "row 2 is changed")
	w.exec("DROP TRIGGER audit_refuse ON ration.audit; UPDATE ration.audit SET reason = '' WHERE id = 2")
	w.expect(w.config(), before, "audit", doctor.Fault, "1 of the triggers")
}

func TestAnOlderSchemaIsFound(t *testing.T) {
	t.Parallel()
	w := newWard(t, dbtest.New(t))
	before := w.examine(w.config())
	if err := migrations.DownOne(t.Context(), w.db.OwnerURL()); err != nil {
		t.Fatal(err)
	}
	if f := w.expect(w.config(), before, "schema", doctor.Fault, "this program needs"); !strings.Contains(f.Mend, "ration migrate up") {
		t.Errorf("its mend is %q", f.Mend)
	}
	later := w.config()
	later.Migrations++
	if err := migrations.Up(t.Context(), w.db.OwnerURL()); err != nil {
		t.Fatal(err)
	}
	w.expect(later, before, "schema", doctor.Warning, "1 migrations are not applied yet")
}

func TestADatabaseWithoutSchemaIsExamined(t *testing.T) {
	t.Parallel()
	w := newWard(t, dbtest.Empty(t))
	report := w.examine(w.config())
	if report.Worst() != doctor.Fault || report.Findings[0].Found != "the database has no Ration schema" {
		t.Errorf("found %q", report.Findings)
	}
}

// Whoever sees less is told so, and is not shut out.
func TestTheServiceMayExamine(t *testing.T) {
	t.Parallel()
	w := newWard(t, dbtest.New(t))
	before := w.examine(w.config())
	config := w.config()
	config.URL = w.db.ServiceURL()
	f := w.expect(config, before, "transactions", doctor.Warning, "ration_service sees only its own sessions")
	if f.Mend != "GRANT pg_monitor TO ration_service;" {
		t.Errorf("its mend is %q", f.Mend)
	}
}

func TestClocksThatDisagree(t *testing.T) {
	t.Parallel()
	w := newWard(t, dbtest.New(t))
	before := w.examine(w.config())
	for offset, want := range map[time.Duration]struct {
		severity doctor.Severity
		says     string
	}{
		+5 * time.Second: {doctor.Warning, "behind this machine's"},
		-5 * time.Second: {doctor.Warning, "ahead of this machine's"},
		+5 * time.Minute: {doctor.Fault, "behind this machine's"},
	} {
		config := w.config()
		config.Clock = func() time.Time { return time.Now().Add(offset) }
		w.expect(config, before, "clock", want.severity, want.says)
	}
	w.exec(fmt.Sprintf("INSERT INTO ration.audit (at, actor, action, reason, request_id) VALUES (%d, 'ana', 'test.done', '', '')", time.Now().Add(time.Hour).UnixMicro()))
	w.expect(w.config(), before, "clock steps", doctor.Warning, "the database's clock has gone back: the newest row of the audit is")
	marked := newWard(t, dbtest.New(t, dbtest.TestClock))
	marked.expect(marked.config(), before, "clock steps", doctor.Fault, "test clock")
}

func TestConnectionBudget(t *testing.T) {
	t.Parallel()
	w := newWard(t, dbtest.New(t))
	config := w.config()
	before := w.examine(config)
	config.Connections, config.Instances = 30, 400
	w.expect(config, before, "connections", doctor.Fault, "400 instances may open 30 connections each, 12000 together")
}
