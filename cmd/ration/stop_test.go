//go:build unix

package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
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

// A private server is stopped all the same, and leaves nothing behind.
func TestSecondSignalStopsThePrivateServer(t *testing.T) {
	t.Parallel()
	dir := devFolder(t)
	sockets := filepath.Join(dir, "tmp")
	if err := errors.Join(os.Mkdir(sockets, 0o755), os.Chmod(sockets, 0o1777)); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, strings.Repeat("d", 100)) // no room for a socket in there
	i := spawnCommand(t, []string{"TMPDIR=" + sockets, "RATION_DEV_DIR=" + data, "RATION_PG_BIN=" + os.Getenv("RATION_PG_BIN")}, "dev")
	// A request that never arrives whole holds the end up, once a handler reads
	// it: then the server bids the rest to come.
	caller, err := net.Dial("tcp", strings.TrimPrefix(i.decisions, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	const begun = "POST /internal/rate-decisions HTTP/1.1\r\nHost: ration\r\nContent-Type: application/json\r\nContent-Length: 99\r\nExpect: 100-continue\r\n\r\n"
	if _, err := io.WriteString(caller, begun); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(caller).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("the server begins with %q (%v)", line, err)
	}
	if err := i.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	awaitUnready(t, i)
	if err := i.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := i.stop(); code != exitFailed {
		t.Errorf("it ends with %d", code)
	}
	if left, err := os.ReadDir(sockets); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	if _, err := os.Stat(filepath.Join(data, "postgres", "data", "postmaster.pid")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("PostgreSQL was not stopped: %v", err)
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
