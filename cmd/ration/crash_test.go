//go:build unix

package main

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/internal/dbtest"
)

// The service is killed while callers ask, and started again: what was allowed
// before and after is the capacity, less at most what was charged and not
// answered.
func TestKilledService(t *testing.T) {
	t.Parallel()
	const keys, callers, capacity = 4, 8, 200
	db := newDatabase(t)
	var allowed [keys]atomic.Int32
	var answers, undecided atomic.Int32
	// hammer asks until the program is gone or the bucket of the caller's key is empty.
	hammer := func(i *instance, killAfter int32) {
		var asking sync.WaitGroup
		for caller := range callers {
			asking.Go(func() {
				for {
					a, err := i.ask(request("op", fmt.Sprint("key-", caller%keys)))
					switch {
					case err != nil:
						return
					case a.Status == http.StatusOK:
						allowed[caller%keys].Add(1)
					case a.Status == http.StatusTooManyRequests:
						return
					default:
						undecided.Add(1) // late: it may be charged
					}
					if answers.Add(1) == killAfter {
						if err := i.process.Kill(); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		asking.Wait()
	}
	first := spawn(t, db)
	first.put(t, "p", slow("op", capacity, ""), 0)
	hammer(first, keys*capacity/4)
	if code := first.stop(); code == exitDone {
		t.Fatal("the first program was not killed: nothing was tested")
	}
	hammer(spawn(t, db), 0)
	total := int32(0)
	for key := range keys {
		total += allowed[key].Load()
		if allowed[key].Load() > capacity {
			t.Errorf("key %d: %d are allowed of %d", key, allowed[key].Load(), capacity)
		}
	}
	if lost := keys*capacity - total; lost > callers+undecided.Load() {
		t.Errorf("%d tokens are neither answered nor in flight when the program was killed (%d callers, %d late answers)",
			lost, callers, undecided.Load())
	}
}

// A killed backend takes the whole server down, and the unlogged tables with
// it. Nothing is decided from empty tables; once the loss is recorded the
// service goes on by itself, each policy by its own rule.
func TestKilledBackend(t *testing.T) {
	t.Parallel()
	db, _ := dbtest.OwnServer(t, nil)
	relax(t, db)
	i := serve(t, db)
	const capacity = 10
	i.put(t, "empty", slow("empty", capacity, `"afterLoss":"empty",`), 0)
	i.put(t, "idle", slow("idle", capacity, `"afterLoss":"idle",`), 0)
	i.put(t, "durable", slow("durable", capacity, `"durability":"durable",`), 0)
	operations := []string{"empty", "idle", "durable"}
	for _, operation := range operations {
		for range 4 {
			i.mustAsk(t, request(operation, "A"))
		}
	}
	killBackend(t, db)

	losses := func() int {
		conn, err := pgx.Connect(t.Context(), db.OwnerURL())
		if err != nil {
			return -1 // not up yet
		}
		defer conn.Close(t.Context())
		var n int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM ration.state_loss`).Scan(&n); err != nil {
			return -1
		}
		return n
	}
	want := map[string]int64{"empty": 0, "idle": capacity - 1, "durable": capacity - 5}
	for _, operation := range operations {
		var a answer
		var unanswered int64 // each may have charged all the same, and says so
		eventually(t, operation+" is decided again", func() bool {
			var err error
			a, err = i.ask(request(operation, "A"))
			if err != nil {
				t.Fatal(err)
			}
			if a.Status == http.StatusInternalServerError {
				t.Fatalf("a crash is answered %s", a.Type)
			}
			if a.Status == http.StatusServiceUnavailable {
				unanswered++
			}
			return a.Status == http.StatusOK || a.Status == http.StatusTooManyRequests
		})
		if operation != "durable" && losses() != 1 {
			t.Fatalf("%s is decided while %d losses are recorded", operation, losses())
		}
		if a.Allowed != (operation != "empty") || a.Remaining > want[operation] || a.Remaining < max(0, want[operation]-unanswered) {
			t.Errorf("%s after the loss: %+v, want %d remaining, less up to %d", operation, a, want[operation], unanswered)
		}
	}
	if code, _, errs := command(t, nil, "", "health", i.metrics+"/readyz"); code != exitDone {
		t.Errorf("not ready after the crash: %s", errs)
	}
	if n := losses(); n != 1 {
		t.Errorf("%d losses are recorded, want one", n)
	}
}

// killBackend ends one session of the service without a warning, and returns
// when the server has noticed: it has ended a session that waits.
func killBackend(t *testing.T, db *dbtest.DB) {
	t.Helper()
	witness, err := pgx.Connect(t.Context(), db.OwnerURL())
	if err != nil {
		t.Fatal(err)
	}
	defer witness.Close(t.Context())
	var pid int
	err = witness.QueryRow(t.Context(), `SELECT pid FROM pg_stat_activity WHERE usename = $1 LIMIT 1`, dbtest.ServiceRole).Scan(&pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := witness.Exec(t.Context(), `SELECT pg_sleep(60)`); err == nil {
		t.Fatal("the server did not notice that a session was killed")
	}
}
