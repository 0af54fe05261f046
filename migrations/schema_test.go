package migrations_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/migrations"
)

var update = flag.Bool("update", false, "write sql/schema.golden.sql anew")

const (
	golden    = "../sql/schema.golden.sql"
	functions = "../sql/functions"
)

// migrate gives a database with the embedded history applied in place, not by
// the template that other tests clone.
func migrate(t *testing.T) *dbtest.DB {
	t.Helper()
	db := dbtest.Empty(t)
	if err := migrations.Up(t.Context(), db.OwnerURL()); err != nil {
		t.Fatal(err)
	}
	return db
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func dumpOf(t *testing.T, db *dbtest.DB) string {
	t.Helper()
	text, err := dump(t.Context(), connect(t, db.OwnerURL()))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSchemaIsTheGoldenOne(t *testing.T) {
	t.Parallel()
	got := dumpOf(t, migrate(t))
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the schema differs from %s (-update writes it anew):\n%s", golden, diff)
	}
}

// A clone has to be what migrating in place gives, the settings of roles
// included, which PostgreSQL does not clone.
func TestCloneIsWhatMigratingGives(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(dumpOf(t, migrate(t)), dumpOf(t, dbtest.New(t))); diff != "" {
		t.Error(diff)
	}
}

func TestSchemaComesBackAfterGoingDown(t *testing.T) {
	t.Parallel()
	db := migrate(t)
	before := dumpOf(t, db)
	for range migrations.Latest() {
		if err := migrations.DownOne(t.Context(), db.OwnerURL()); err != nil {
			t.Fatal(err)
		}
	}
	left := one[[]string](t, db, `SELECT array_agg(name) FROM (
		SELECT relname::text FROM pg_class WHERE relnamespace = 'ration'::regnamespace AND relname NOT LIKE 'schema_migrations%'
		UNION ALL SELECT proname::text FROM pg_proc WHERE pronamespace = 'ration'::regnamespace
		UNION ALL SELECT typname::text FROM pg_type WHERE typnamespace = 'ration'::regnamespace AND typname NOT LIKE '%schema_migrations') AS things (name)`)
	if len(left) > 0 {
		t.Errorf("all the way down, and these are left: %v", left)
	}
	if err := migrations.Up(t.Context(), db.OwnerURL()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, dumpOf(t, db)); diff != "" {
		t.Errorf("up again gives another schema:\n%s", diff)
	}
}

// Roles belong to the whole server: databases that are migrated at the same
// time meet in them.
func TestDatabasesOfOneServerMigrateAtOnce(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	for range 4 {
		db := dbtest.Empty(t)
		for range 2 {
			group.Go(func() {
				if err := migrations.Up(t.Context(), db.OwnerURL()); err != nil {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
}

// definitions are all functions in the schema, with what CREATE OR REPLACE
// can change about them.
func definitions(t *testing.T, tx pgx.Tx) map[string]string {
	t.Helper()
	rows, err := tx.Query(t.Context(), `SELECT proname || '(' || pg_get_function_identity_arguments(oid) || ')', pg_get_functiondef(oid)
		FROM pg_proc WHERE pronamespace = 'ration'::regnamespace AND prokind IN ('f', 'p')`)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	var name, definition string
	if _, err := pgx.ForEachRow(rows, []any{&name, &definition}, func() error {
		all[name] = definition
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// The sources are what people read and change, the migrations what runs:
// installing a source into a migrated database must change nothing.
func TestFunctionsAreTheirSources(t *testing.T) {
	t.Parallel()
	tx, err := connect(t, migrate(t).OwnerURL()).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	migrated := definitions(t, tx)
	sources, err := filepath.Glob(filepath.Join(functions, "*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	sourced := map[string]bool{}
	for _, path := range sources {
		name := strings.TrimSuffix(filepath.Base(path), ".sql")
		sourced[name] = true
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), string(text)); err != nil {
			t.Fatalf("install %s: %v", path, err)
		}
	}
	if diff := cmp.Diff(migrated, definitions(t, tx)); diff != "" {
		t.Errorf("the sources (+) are not what the migrations install (-):\n%s", diff)
	}
	installed := map[string]bool{}
	for identity := range migrated {
		name, _, _ := strings.Cut(identity, "(")
		installed[name] = true
	}
	if diff := cmp.Diff(installed, sourced); diff != "" {
		t.Errorf("installed functions (-) and files in sql/functions (+), one a file named after it:\n%s", diff)
	}
}
