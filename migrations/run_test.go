package migrations_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/migrations"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// twoSteps is a small history whose second step counts how often it ran.
func twoSteps() fstest.MapFS {
	return fstest.MapFS{
		"000001_log.up.sql":    {Data: []byte("CREATE TABLE ration.log (ran int);")},
		"000001_log.down.sql":  {Data: []byte("DROP TABLE ration.log;")},
		"000002_note.up.sql":   {Data: []byte("-- A body with semicolons, which stays whole.\nDO $$ BEGIN PERFORM 1; INSERT INTO ration.log VALUES (1); END $$;")},
		"000002_note.down.sql": {Data: []byte("DELETE FROM ration.log;")},
	}
}

func exec(t *testing.T, db *dbtest.DB, sql string) {
	t.Helper()
	if _, err := db.Owner().Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func one[T any](t *testing.T, db *dbtest.DB, sql string) T {
	t.Helper()
	rows, err := db.Owner().Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func wantVersion(t *testing.T, fixture migrations.Fixture, db *dbtest.DB, want migrations.Status) {
	t.Helper()
	got, err := fixture.Version(t.Context(), db.OwnerURL())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUpDownUp(t *testing.T) {
	t.Parallel()
	db, fixture := dbtest.Empty(t), migrations.NewFixture(t, twoSteps())
	wantVersion(t, fixture, db, migrations.Status{Version: 0, Latest: 2})
	for range 2 { // having nothing to do is success
		if err := fixture.Up(t.Context(), db.OwnerURL()); err != nil {
			t.Fatal(err)
		}
		wantVersion(t, fixture, db, migrations.Status{Version: 2, Latest: 2})
	}
	for version := uint(2); version > 0; version-- {
		if err := fixture.DownOne(t.Context(), db.OwnerURL()); err != nil {
			t.Fatal(err)
		}
		wantVersion(t, fixture, db, migrations.Status{Version: version - 1, Latest: 2})
	}
	if err := fixture.DownOne(t.Context(), db.OwnerURL()); err != nil {
		t.Errorf("down from nothing: %v", err)
	}
	if err := fixture.Up(t.Context(), db.OwnerURL()); err != nil {
		t.Fatal(err)
	}
	if ran := one[int](t, db, `SELECT count(*)::int FROM ration.log`); ran != 1 {
		t.Errorf("the second step left %d marks", ran)
	}
}

func TestFiveInstancesAtOnce(t *testing.T) {
	t.Parallel()
	db, fixture := dbtest.Empty(t), migrations.NewFixture(t, twoSteps())
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			if err := fixture.Up(t.Context(), db.OwnerURL()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if ran := one[int](t, db, `SELECT count(*)::int FROM ration.log`); ran != 1 {
		t.Errorf("the second step ran %d times", ran)
	}
	if locks := one[int](t, db, `SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`); locks != 0 {
		t.Errorf("%d advisory locks are left", locks)
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	db, fixture := dbtest.Empty(t), migrations.NewFixture(t, twoSteps())
	holder, err := db.Owner().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Release()
	if _, err := holder.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, migrations.LockKey); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() { done <- fixture.Up(ctx, db.OwnerURL()) }()
	await(t, db, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'ration migrate' AND query LIKE '%pg_try_advisory_lock%')`)
	cancel()
	err = <-done
	if busy := (*migrations.BusyError)(nil); !errors.As(err, &busy) || !errors.Is(err, context.Canceled) {
		t.Errorf("the wait ended with %v", err)
	}
	if one[bool](t, db, `SELECT to_regnamespace('ration') IS NOT NULL`) {
		t.Error("something was done without the lock")
	}
}

// await asks until the condition holds; the test's own deadline bounds it.
func await(t *testing.T, db *dbtest.DB, condition string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !one[bool](t, db, condition) {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("never came: %s", condition)
		}
	}
}

func TestFailedMigrationLeavesNoTrace(t *testing.T) {
	t.Parallel()
	db, steps := dbtest.Empty(t), twoSteps()
	good := steps["000002_note.up.sql"].Data
	steps["000002_note.up.sql"].Data = []byte("INSERT INTO ration.log VALUES (1);\nSELECT ran FROM ration.nowhere;")
	err := migrations.NewFixture(t, steps).Up(t.Context(), db.OwnerURL())
	failed := (*migrations.FailedError)(nil)
	if !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if failed.File != "000002_note.up.sql" || failed.Line != 2 || !failed.RolledBack {
		t.Errorf("the failure is %+v", failed)
	}
	if ran := one[int](t, db, `SELECT count(*)::int FROM ration.log`); ran != 0 {
		t.Errorf("%d marks are left of it", ran)
	}
	steps["000002_note.up.sql"].Data = good
	fixture := migrations.NewFixture(t, steps)
	wantVersion(t, fixture, db, migrations.Status{Version: 1, Latest: 2})
	if err := fixture.Up(t.Context(), db.OwnerURL()); err != nil {
		t.Errorf("after the mend: %v", err)
	}
}

func TestFailedFirstMigrationLeavesNoTrace(t *testing.T) {
	t.Parallel()
	db, steps := dbtest.Empty(t), twoSteps()
	steps["000001_log.up.sql"].Data = []byte("SELECT 1/0;")
	if err := migrations.NewFixture(t, steps).Up(t.Context(), db.OwnerURL()); err == nil {
		t.Fatal("no error")
	}
	fixture := migrations.NewFixture(t, twoSteps())
	wantVersion(t, fixture, db, migrations.Status{Version: 0, Latest: 2})
	if err := fixture.Up(t.Context(), db.OwnerURL()); err != nil {
		t.Errorf("after the mend: %v", err)
	}
}

// An index that is built concurrently is not undone when it fails, so that
// failure has to be looked at by somebody.
func TestFailedConcurrentIndexIsLeftInDoubt(t *testing.T) {
	t.Parallel()
	db, steps := dbtest.Empty(t), twoSteps()
	steps["000003_index.up.sql"] = &fstest.MapFile{Data: []byte("CREATE UNIQUE INDEX CONCURRENTLY log_ran ON ration.log ((ran / 0));")}
	steps["000003_index.down.sql"] = &fstest.MapFile{Data: []byte("DROP INDEX ration.log_ran;")}
	fixture := migrations.NewFixture(t, steps)
	err := fixture.Up(t.Context(), db.OwnerURL())
	if failed := (*migrations.FailedError)(nil); !errors.As(err, &failed) || failed.RolledBack {
		t.Fatalf("the failure is %v", err)
	}
	wantVersion(t, fixture, db, migrations.Status{Version: 3, Dirty: true, Latest: 3})
}

func TestRunningMigrationEndsWithTheContext(t *testing.T) {
	t.Parallel()
	db, steps := dbtest.Empty(t), twoSteps()
	holder, err := db.Owner().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Release()
	if _, err := holder.Exec(t.Context(), `SELECT pg_advisory_lock(4711)`); err != nil {
		t.Fatal(err)
	}
	steps["000002_note.up.sql"].Data = []byte("SET lock_timeout = 0; INSERT INTO ration.log VALUES (1); SELECT pg_advisory_xact_lock(4711);")
	fixture := migrations.NewFixture(t, steps)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() { done <- fixture.Up(ctx, db.OwnerURL()) }()
	await(t, db, `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted)`)
	cancel()
	err = <-done
	if failed := (*migrations.FailedError)(nil); !errors.As(err, &failed) || !failed.RolledBack {
		t.Errorf("the cancelled migration is %v", err)
	}
	wantVersion(t, fixture, db, migrations.Status{Version: 1, Latest: 2})
}

func TestNewerDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	db, fixture := dbtest.Empty(t), migrations.NewFixture(t, twoSteps())
	if err := fixture.Up(t.Context(), db.OwnerURL()); err != nil {
		t.Fatal(err)
	}
	exec(t, db, `UPDATE ration.schema_migrations SET version = 3`)
	for name, run := range map[string]func(context.Context, string) error{"up": fixture.Up, "down": fixture.DownOne} {
		err := run(t.Context(), db.OwnerURL())
		if newer := (*migrations.NewerError)(nil); !errors.As(err, &newer) || newer.Version != 3 || newer.Latest != 2 {
			t.Errorf("%s on a newer database: %v", name, err)
		}
	}
	wantVersion(t, fixture, db, migrations.Status{Version: 3, Latest: 2})
}

func TestDirtyDatabaseIsExplainedAndForced(t *testing.T) {
	t.Parallel()
	db, fixture := dbtest.Empty(t), migrations.NewFixture(t, twoSteps())
	if err := fixture.Up(t.Context(), db.OwnerURL()); err != nil {
		t.Fatal(err)
	}
	exec(t, db, `UPDATE ration.schema_migrations SET dirty = true`)
	wantVersion(t, fixture, db, migrations.Status{Version: 2, Dirty: true, Latest: 2})
	for name, run := range map[string]func(context.Context, string) error{"up": fixture.Up, "down": fixture.DownOne} {
		err := run(t.Context(), db.OwnerURL())
		if dirty := (*migrations.DirtyError)(nil); !errors.As(err, &dirty) || !strings.Contains(err.Error(), "ration migrate force 2") {
			t.Errorf("%s on a dirty database: %v", name, err)
		}
	}
	err := fixture.Force(t.Context(), db.OwnerURL(), 3)
	if unknown := (*migrations.UnknownVersionError)(nil); !errors.As(err, &unknown) {
		t.Errorf("force to a version that there is not: %v", err)
	}
	for _, version := range []uint{0, 1, 2} {
		if err := fixture.Force(t.Context(), db.OwnerURL(), version); err != nil {
			t.Fatal(err)
		}
		wantVersion(t, fixture, db, migrations.Status{Version: version, Latest: 2})
	}
	if err := fixture.Up(t.Context(), db.OwnerURL()); err != nil {
		t.Errorf("after the operator's word: %v", err)
	}
}
