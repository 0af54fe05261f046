//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/internal/dbtest"
)

// heldCall is a call that waits in the store for a row that the test holds.
type heldCall struct {
	release  func()
	answered <-chan answer // closed without an answer when none came
}

// hold asks for a decision and returns when it waits.
func hold(t *testing.T, db *dbtest.DB, i *instance) heldCall {
	t.Helper()
	i.put(t, "p", slow("op", 10, ""), 0)
	i.mustAsk(t, request("op", "A")) // its row exists now
	holder, err := pgx.Connect(t.Context(), db.OwnerURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Close(t.Context()) }) // it has rolled back, or does so now
	for _, statement := range []string{"BEGIN", "SELECT FROM ration.bucket_fast FOR UPDATE"} {
		if _, err := holder.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	answered := make(chan answer, 1)
	go func() {
		defer close(answered)
		if a, err := i.ask(request("op", "A")); err == nil {
			answered <- a
		}
	}()
	eventually(t, "the call waits for the row", func() bool {
		var waiting bool
		err := db.Owner().QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND usename = $1 AND wait_event_type = 'Lock')`, dbtest.ServiceRole).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		return waiting
	})
	return heldCall{answered: answered, release: func() {
		if _, err := holder.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
	}}
}

// awaitUnready returns when the instance says that it is stopping.
func awaitUnready(t *testing.T, i *instance) {
	t.Helper()
	eventually(t, "the instance says that it is not ready", func() bool {
		code, _, errs := command(t, nil, "", "health", i.metrics+"/readyz")
		return code == exitFailed && strings.Contains(errs, "This instance is stopping.")
	})
}

// An instance that is asked to end says that it is not ready, answers what was
// asked before, and ends well.
func TestStopAnswersWhatWasAsked(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	i := spawn(t, db)
	call := hold(t, db, i)
	if err := i.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	awaitUnready(t, i)
	call.release()
	if a := <-call.answered; !a.Allowed || a.Remaining != 8 {
		t.Errorf("what was asked before the end is answered %+v", a)
	}
	if code := i.stop(); code != exitDone {
		t.Errorf("it ends with %d", code)
	}
}

// The second signal does not wait for anything.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	i := spawn(t, db)
	call := hold(t, db, i)
	if err := i.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	awaitUnready(t, i)
	if err := i.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := i.stop(); code == exitDone {
		t.Error("it ends as if all was well")
	}
	if a, ok := <-call.answered; ok {
		t.Errorf("the call is answered %+v while its row is held", a)
	}
	call.release()
}
