package doctor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/pgstore/doctor"
	"github.com/rationhq/ration/policy"
)

// What concerns a server as a whole, on one of the test's own: it begins
// without any finding.
func TestAServer(t *testing.T) {
	t.Parallel()
	db, _ := dbtest.OwnServer(t, map[string]string{"fsync": "on", "full_page_writes": "on", "max_prepared_transactions": "2"})
	w := newWard(t, db)
	config := w.config()
	config.TransactionMax = time.Nanosecond // however young, it is too old
	before := w.examine(config)
	if len(before.Findings) > 0 {
		t.Fatalf("a fresh server has %q", before.Findings)
	}

	other := connect(t, db.OwnerURL())
	if _, err := other.Exec(t.Context(), "BEGIN; SELECT pg_current_xact_id()"); err != nil {
		t.Fatal(err)
	}
	f := w.expect(config, before, "transactions", doctor.Fault, "idle in transaction: until it ends")
	if want := fmt.Sprintf("SELECT pg_terminate_backend(%d);", other.PgConn().PID()); f.Mend != want {
		t.Errorf("mend %q, want %q", f.Mend, want)
	}
	patient := config
	patient.TransactionMax = time.Hour
	if all := found(w.examine(patient), before); len(all) > 0 {
		t.Errorf("below its age the transaction is no finding: %q", all)
	}
	w.exec(f.Mend)
	w.await(fmt.Sprintf("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %d)", other.PgConn().PID()))

	if _, err := w.owner.Exec(t.Context(), "BEGIN; CREATE TABLE t (); PREPARE TRANSACTION 'forgotten'"); err != nil {
		t.Fatal(err)
	}
	f = w.expect(config, before, "prepared transactions", doctor.Fault, "prepared transaction 'forgotten'")
	_, rollback, _ := strings.Cut(f.Mend, " or ")
	w.exec(strings.TrimSuffix(rollback, ";"))

	w.exec("SELECT pg_create_physical_replication_slot('nobody', true)")
	f = w.expect(config, before, "replication slots", doctor.Warning, "replication slot nobody (physical) is used by nobody; it keeps")
	w.mended(config, before, f)

	for _, test := range []struct {
		check, makes, says, seen string
	}{
		{"autovacuum", "ALTER SYSTEM SET autovacuum = off", "autovacuum is off", "SELECT current_setting('autovacuum') = "},
		{"autovacuum", "ALTER SYSTEM SET track_counts = off", "track_counts is off", "SELECT current_setting('track_counts') = "},
	} {
		w.exec(test.makes + "; SELECT pg_reload_conf()")
		w.await(test.seen + "'off'")
		f = w.expect(config, before, test.check, doctor.Fault, test.says)
		w.exec(strings.TrimSuffix(f.Mend, ";"))
		w.await(test.seen + "'on'")
	}

	w.exec("ALTER ROLE ration_service SUPERUSER")
	f = w.expect(config, before, "roles", doctor.Fault, "ration_service may do everything")
	w.mended(config, before, f)
	w.exec("GRANT " + w.owner.Config().User + " TO ration_operator")
	f = w.expect(config, before, "roles", doctor.Fault, "ration_operator is a member of")
	w.mended(config, before, f)

	w.standbys(config, before)
}

// standbys goes through what durable policies want of standbys.
func (w *ward) standbys(config doctor.Config, before *doctor.Report) {
	w.Helper()
	store, err := pgstore.Open(w.Context(), pgstore.Config{URL: w.db.OwnerURL(), CallTimeout: time.Minute})
	if err != nil {
		w.Fatal(err)
	}
	defer store.Close()
	change, err := policy.ParseChange([]byte(`{"match": {}, "per": ["account"], "durability": "durable",
		"limit": {"algorithm": "token_bucket", "capacity": 10, "refillTokens": 1, "refillSeconds": 1}}`))
	if err != nil {
		w.Fatal(err)
	}
	if _, _, err := store.Put(w.Context(), policy.Put{ID: "kept", Change: change}); err != nil {
		w.Fatal(err)
	}
	w.expect(config, before, "standbys", doctor.Warning, "1 durable policies, and no synchronous standby")
	w.exec("ALTER SYSTEM SET synchronous_standby_names = 'away'; SELECT pg_reload_conf()")
	w.await("SELECT current_setting('synchronous_standby_names') = 'away'")
	f := w.expect(config, before, "standbys", doctor.Fault, "no such standby streams: every commit of a durable policy waits")
	_, alone, _ := strings.Cut(f.Mend, " or ")
	w.exec(strings.TrimSuffix(alone, ";")) // else nothing here would ever commit
}
