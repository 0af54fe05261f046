package dbtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/migrations"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			db := dbtest.New(t)
			// A second database of the same name, or one shared, would refuse.
			if _, err := db.Owner().Exec(t.Context(), `CREATE TABLE public.mine (v int)`); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNewIsMigratedAndEmptyIsNot(t *testing.T) {
	t.Parallel()
	status, err := migrations.Version(t.Context(), dbtest.New(t).OwnerURL())
	if err != nil || status.Version != migrations.Latest() || status.Dirty {
		t.Errorf("a new database is at %+v (%v), want version %d", status, err, migrations.Latest())
	}
	var exists bool
	empty := dbtest.Empty(t)
	if err := empty.Owner().QueryRow(t.Context(), `SELECT to_regnamespace('ration') IS NOT NULL`).Scan(&exists); err != nil || exists {
		t.Errorf("an empty database has the schema: %v (%v)", exists, err)
	}
}

func TestDatabaseGoesWithItsTest(t *testing.T) {
	t.Parallel()
	var url string
	t.Run("test", func(t *testing.T) {
		db := dbtest.Empty(t)
		db.Owner()
		url = db.OwnerURL()
	})
	_, err := pgx.Connect(t.Context(), url)
	if err == nil {
		t.Error("the database is still there")
	}
}

func TestServiceLogsInAsItself(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), dbtest.New(t).ServiceURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var user, timeout string
	if err := conn.QueryRow(t.Context(), `SELECT session_user, current_setting('statement_timeout')`).Scan(&user, &timeout); err != nil {
		t.Fatal(err)
	}
	if user != dbtest.ServiceRole || timeout == "0" {
		t.Errorf("logged in as %s with statement_timeout %s; a clone has to set the role's settings again", user, timeout)
	}
}

func TestOwnServerEndsWithItsTest(t *testing.T) {
	t.Parallel()
	var data string
	t.Run("test", func(t *testing.T) {
		db, _ := dbtest.OwnServer(t, map[string]string{"work_mem": "7MB"})
		var setting string
		if err := db.Owner().QueryRow(t.Context(), `SELECT current_setting('work_mem'), current_setting('data_directory')`).Scan(&setting, &data); err != nil {
			t.Fatal(err)
		}
		if setting != "7MB" {
			t.Errorf("work_mem is %s, not what was asked for", setting)
		}
	})
	if _, err := os.Stat(data); data != "" && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder %s is still there: %v", data, err)
	}
}

// The choice between the two ways to clone rests on this.
func BenchmarkClone(b *testing.B) {
	for b.Loop() {
		dbtest.New(b)
	}
}
