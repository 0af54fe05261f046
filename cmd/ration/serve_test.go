package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rationhq/ration/internal/dbtest"
)

// The example of the HTTP contract: cost 5 of 40, eight such calls at once,
// the ninth denied.
func TestFirstMinute(t *testing.T) {
	t.Parallel()
	i := serve(t, newDatabase(t))
	example, err := os.ReadFile("examples/report-create.json")
	if err != nil {
		t.Fatal(err)
	}
	i.put(t, "report-create", string(example), 0)

	first := i.mustAsk(t, `{"verifiedAccount":"A","operation":"report.create","cost":5,"policyVersion":1}`)
	if !first.Allowed || first.Remaining != 35 || first.RetryAfterSeconds == nil || *first.RetryAfterSeconds != 0 || first.PolicyVersion != 1 {
		t.Errorf("the first call is answered %+v", first)
	}

	// Nine in one batch are nine at the same instant.
	decisions := strings.TrimSuffix(strings.Repeat(request("report.create", "B")+",", 9), ",")
	status, _, content, err := i.call(http.MethodPost, i.decisions+"/internal/rate-decisions/batch", `{"decisions":[`+decisions+`]}`)
	if err != nil || status != http.StatusOK {
		t.Fatalf("batch: %d %s (%v)", status, content, err)
	}
	var batch struct{ Decisions []answer }
	if err := json.Unmarshal(content, &batch); err != nil {
		t.Fatal(err)
	}
	for n, one := range batch.Decisions {
		if want := n < 8; one.Allowed != want {
			t.Errorf("call %d of nine at once: allowed %v, want %v", n+1, one.Allowed, want)
		}
	}

	// As single calls, of a bucket that earns nothing meanwhile.
	i.put(t, "once", slow("once", 40, `"costs":{"default":5},`), 0)
	var allowed atomic.Int32
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			if a, err := i.ask(request("once", "A")); err == nil && a.Allowed {
				allowed.Add(1)
			}
		})
	}
	callers.Wait()
	if allowed.Load() != 8 {
		t.Errorf("%d of eight calls at once are allowed", allowed.Load())
	}
	ninth := i.mustAsk(t, request("once", "A"))
	if ninth.Status != http.StatusTooManyRequests || ninth.Header.Get("Retry-After") == "" {
		t.Errorf("the ninth call is answered %+v", ninth)
	}
}

// A policy that was put through one instance is in force there when the answer
// arrives, and in another one soon.
func TestPolicyReachesEveryInstance(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	one, other := serve(t, db), serve(t, db)
	for version := 1; version <= 5; version++ {
		operation := fmt.Sprintf("op.%d", version) // each version matches something else
		one.put(t, "moving", slow(operation, 10, ""), version-1)
		if a := one.mustAsk(t, request(operation, "A")); a.PolicyVersion != version {
			t.Errorf("put as version %d, answered by version %d", version, a.PolicyVersion)
		}
		eventually(t, "the other instance has the policy", func() bool {
			return other.metric(t, `ration_policy_version{policy="moving"}`) == fmt.Sprint(version)
		})
		if a := other.mustAsk(t, request(operation, "A")); a.PolicyVersion != version {
			t.Errorf("the other instance answers by version %d, want %d", a.PolicyVersion, version)
		}
	}
}

func TestHealthAndMetrics(t *testing.T) {
	t.Parallel()
	i := serve(t, newDatabase(t))
	for _, path := range []string{"/livez", "/readyz"} {
		if code, _, errs := command(t, nil, "", "health", i.metrics+path); code != exitDone {
			t.Errorf("health %s: %d %s", path, code, errs)
		}
	}
	_, _, list, err := i.call(http.MethodGet, i.metrics+"/readyz?verbose", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []string{"accepting", "policies", "schema", "store"} {
		if !strings.Contains(string(list), "[+]"+check+" ok") {
			t.Errorf("readiness does not list %s:\n%s", check, list)
		}
	}
	for _, series := range []string{
		`ration_pool_connections_max{pool="upkeep"}`, `ration_pool_connections{pool="operations",state="used"}`, "go_goroutines",
	} {
		if i.metric(t, series) == "" {
			t.Errorf("%s is missing", series)
		}
	}
	if code, _, _ := command(t, nil, "", "health", i.metrics+"/nothing"); code != exitFailed {
		t.Errorf("health of a 404 exits %d", code)
	}
}

// A schema that was taken away makes an instance unready.
func TestReadinessSeesTheSchema(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	i := serve(t, db)
	if _, err := db.Owner().Exec(t.Context(), `DROP TABLE ration.schema_version`); err != nil {
		t.Fatal(err)
	}
	code, _, errs := command(t, nil, "", "health", i.metrics+"/readyz")
	if code != exitFailed || !strings.Contains(errs, "ration migrate up") {
		t.Errorf("without a schema: %d %s", code, errs)
	}
}

func TestServeNeedsASchema(t *testing.T) {
	t.Parallel()
	environ := append(anyPort(), "RATION_DATABASE_URL="+dbtest.Empty(t).OwnerURL())
	code, _, errs := command(t, environ, "", "serve")
	if code != exitFailed || !strings.Contains(errs, "ration migrate up") {
		t.Errorf("on an empty database: %d %s", code, errs)
	}
}

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	i := serve(t, db)
	environ := append(anyPort(), "RATION_DATABASE_URL="+db.ServiceURL(), "RATION_ADMIN_ADDR="+strings.TrimPrefix(i.admin, "http://"))
	code, _, errs := command(t, environ, "", "serve")
	if code != exitFailed || !strings.Contains(errs, "RATION_ADMIN_ADDR") {
		t.Errorf("on an address in use: %d %s", code, errs)
	}
}
