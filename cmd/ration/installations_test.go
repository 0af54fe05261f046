//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/internal/dbtest"
)

// waited is the answer to a change whose caller waits.
type waited struct {
	Status     int
	Version    int
	Installed  bool
	WaitingFor []struct{ Name string }
}

// putWaiting installs a version of policy p and waits for it.
func (i *instance) putWaiting(t *testing.T, body string, replaces int, wait string) (w waited) {
	t.Helper()
	header := []string{"If-None-Match", "*"}
	if replaces > 0 {
		header = []string{"If-Match", fmt.Sprintf(`"v%d"`, replaces)}
	}
	status, _, content, err := i.call(http.MethodPut, i.admin+"/v1/policies/p?waitForInstall="+wait, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &w); err != nil {
		t.Fatalf("%d %s: %v", status, content, err)
	}
	w.Status = status
	return w
}

// installations lists where policy p is in force, each instance as its name,
// its state and whether it is.
func (i *instance) installations(t *testing.T) string {
	t.Helper()
	_, _, content, err := i.call(http.MethodGet, i.admin+"/v1/policies/p/installations", "")
	if err != nil {
		t.Fatal(err)
	}
	var listed struct {
		Instances []struct {
			Name, State string
			Installed   bool
		}
	}
	if err := json.Unmarshal(content, &listed); err != nil {
		t.Fatalf("%s: %v", content, err)
	}
	var lines []string
	for _, one := range listed.Instances {
		lines = append(lines, fmt.Sprintf("%s %s %t", one.Name, one.State, one.Installed))
	}
	return strings.Join(lines, ", ")
}

// Who waits for a change is told which instance has not confirmed it; one that
// is gone holds nobody up for ever.
func TestAChangeIsConfirmedByEveryInstance(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	hands := newClock(t, db, time.Date(2026, time.November, 30, 6, 0, 0, 0, time.UTC))
	one := start(t, named(db, "one"), "serve")
	two := spawnCommand(t, named(db, "two"), "serve")
	eventually(t, "both say that they live", func() bool { return countInstances(t, db) == 2 })

	if w := one.putWaiting(t, slow("op", 10, ""), 0, "30s"); w.Status != http.StatusCreated || !w.Installed {
		t.Errorf("while both answer: %+v", w)
	}
	if list := one.installations(t); list != "one alive true, two alive true" {
		t.Errorf("installed on %s", list)
	}

	send(t, two, syscall.SIGSTOP)
	one.putWaitingForTwo(t, slow("op", 5, ""), 1)
	if list := one.installations(t); list != "one alive true, two alive false" {
		t.Errorf("installed on %s", list)
	}
	send(t, two, syscall.SIGCONT)
	if w := one.putWaiting(t, slow("op", 5, ""), 2, "30s"); w.Status != http.StatusOK || !w.Installed || w.Version != 2 {
		t.Errorf("when it goes on: %+v", w)
	}
	if count := one.metric(t, "ration_policy_propagation_seconds_count"); count != "2" {
		t.Errorf("%s versions came into force, want 2", count)
	}

	send(t, two, syscall.SIGKILL)
	two.stop()
	hands.forward(6 * time.Second)
	eventually(t, "the killed one is lost", func() bool { return one.installations(t) == "one alive true, two lost true" })
	one.putWaitingForTwo(t, slow("op", 4, ""), 2)
	hands.forward(10 * time.Second)
	if w := one.putWaiting(t, slow("op", 3, ""), 3, "30s"); w.Status != http.StatusOK || !w.Installed {
		t.Errorf("when one is lost for long: %+v", w)
	}
	if list := one.installations(t); list != "one alive true, two lost false" {
		t.Errorf("installed on %s", list)
	}
	one.stop()
	if n := countInstances(t, db); n != 1 {
		t.Errorf("%d instances are listed when one has ended well and one was killed", n)
	}
}

// putWaitingForTwo replaces a version by the next one, which the instance two
// alone does not confirm. How soon the others do is not held.
func (i *instance) putWaitingForTwo(t *testing.T, content string, replaces int) {
	t.Helper()
	eventually(t, "only two has not confirmed", func() bool {
		w := i.putWaiting(t, content, replaces, "300ms")
		if w.Status != http.StatusAccepted || w.Installed {
			t.Fatalf("while two cannot confirm: %+v", w)
		}
		replaces = w.Version // the same content again is no change, and waits as well
		return len(w.WaitingFor) == 1 && w.WaitingFor[0].Name == "two"
	})
}

func send(t *testing.T, i *instance, signal syscall.Signal) {
	t.Helper()
	if err := i.process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

func countInstances(t *testing.T, db *dbtest.DB) (n int) {
	t.Helper()
	if err := db.Owner().QueryRow(t.Context(), `SELECT count(*) FROM ration.instance`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A crash of the store empties the list; whoever lives is on it again soon.
func TestInstancesOutliveACrashOfTheStore(t *testing.T) {
	t.Parallel()
	db, _ := dbtest.OwnServer(t, nil)
	relax(t, db)
	i := serve(t, db)
	i.put(t, "p", slow("op", 10, ""), 0)
	killBackend(t, db)
	eventually(t, "the store tells of itself again", func() bool {
		_, _, content, err := i.call(http.MethodGet, i.admin+"/v1/stores", "")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(content), `"reachable":true`)
	})
	eventually(t, "the instance is listed again", func() bool {
		conn, err := pgx.Connect(t.Context(), db.OwnerURL())
		if err != nil {
			return false
		}
		defer conn.Close(t.Context())
		var n int
		return conn.QueryRow(t.Context(), `SELECT count(*) FROM ration.instance`).Scan(&n) == nil && n == 1
	})
	if w := i.putWaiting(t, slow("op", 5, ""), 1, "30s"); w.Status != http.StatusOK || !w.Installed {
		t.Errorf("%+v", w)
	}
}
