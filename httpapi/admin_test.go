package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

// spec is the body of a policy with a capacity.
func spec(capacity int) string {
	return fmt.Sprintf(`{"match":{"operations":["report.create"]},"per":["account","operation"],`+
		`"limit":{"algorithm":"token_bucket","capacity":%d,"refillTokens":20,"refillSeconds":1}}`, capacity)
}

func adminOf(policies httpapi.Policies) http.Handler {
	return httpapi.NewAdmin(httpapi.AdminConfig{Policies: policies, Actor: "operator"})
}

// withVersions holds report-create in versions 1 to n.
func withVersions(t *testing.T, n int) *stubPolicies {
	t.Helper()
	policies := new(stubPolicies)
	for version := range n {
		change, err := policy.ParseChange([]byte(spec(10 * (version + 1))))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := policies.Put(t.Context(), policy.Put{ID: "report-create", Expected: version, Change: change}); err != nil {
			t.Fatal(err)
		}
	}
	policies.puts = nil
	return policies
}

func TestPolicyExchanges(t *testing.T) {
	t.Parallel()
	const one, json = "/v1/policies/report-create", "application/json"
	three := adminOf(withVersions(t, 3))
	for _, e := range []exchange{
		{name: "create", handler: adminOf(new(stubPolicies)), method: http.MethodPut, body: spec(40), headers: []string{"Content-Type", json, "If-None-Match", "*"}},
		{name: "create-existing", handler: adminOf(withVersions(t, 3)), method: http.MethodPut, body: spec(40), headers: []string{"Content-Type", json, "If-None-Match", "*"}},
		{name: "change", handler: adminOf(withVersions(t, 3)), method: http.MethodPut, body: spec(40), headers: []string{"Content-Type", json, "If-Match", `"v3"`}},
		{name: "change-identical", handler: adminOf(withVersions(t, 3)), method: http.MethodPut, body: spec(30), headers: []string{"Content-Type", json, "If-Match", `"v3"`}},
		{name: "change-stale", handler: adminOf(withVersions(t, 3)), method: http.MethodPut, body: spec(40), headers: []string{"Content-Type", json, "If-Match", `"v2"`}},
		{name: "change-unconditionally", handler: adminOf(withVersions(t, 3)), method: http.MethodPut, body: spec(40)},
		{name: "change-impossibly", handler: adminOf(withVersions(t, 3)), method: http.MethodPut, body: spec(0), headers: []string{"Content-Type", json, "If-Match", `"v3"`}},
		{
			name: "create-open", handler: adminOf(new(stubPolicies)), method: http.MethodPut,
			body:    strings.TrimSuffix(spec(40), "}") + `,"onStoreDown":{"mode":"open"}}`,
			headers: []string{"Content-Type", json, "If-None-Match", "*"},
		},
		{name: "create-misnamed", handler: adminOf(new(stubPolicies)), method: http.MethodPut, target: "/v1/policies/a%20b", body: spec(40), headers: []string{"Content-Type", json, "If-None-Match", "*"}},
		{name: "get", handler: three, method: http.MethodGet},
		{name: "get-known", handler: three, method: http.MethodGet, headers: []string{"If-None-Match", `"v2", W/"v3"`}},
		{name: "get-missing", handler: three, method: http.MethodGet, target: "/v1/policies/nothing"},
		{name: "get-impossible", handler: three, method: http.MethodGet, target: "/v1/policies/%00"},
		{name: "list", handler: three, method: http.MethodGet, target: "/v1/policies"},
		{name: "versions-page", handler: three, method: http.MethodGet, target: one + "/versions?after=1&limit=1"},
		{name: "version", handler: three, method: http.MethodGet, target: one + "/versions/2"},
		{name: "version-missing", handler: three, method: http.MethodGet, target: one + "/versions/4"},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.name = "policy-" + e.name
			if e.target == "" {
				e.target = one
			}
			e.check(t)
		})
	}
}

// TestPutNeedsAPrecondition holds what each precondition leads to; the version
// in force is 3.
func TestPutNeedsAPrecondition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{nil, 428},
		{[]string{"If-Match", `"v2"`}, 412},
		{[]string{"If-Match", `W/"v3"`}, 412},
		{[]string{"If-Match", `"3"`}, 412},
		{[]string{"If-Match", `"v03"`}, 412},
		{[]string{"If-Match", `three`}, 400},
		{[]string{"If-Match", `v3`}, 400},
		{[]string{"If-Match", `"v3`}, 400},
		{[]string{"If-Match", `"v3" "v4"`}, 400},
		{[]string{"If-Match", ``}, 400},
		{[]string{"If-Match", `,`}, 400},
		{[]string{"If-Match", `*`}, 400},
		{[]string{"If-Match", `*, "v3"`}, 400},
		{[]string{"If-Match", strings.Repeat(`"v3",`, 65)}, 400},
		{[]string{"If-None-Match", `*`}, 412},
		{[]string{"If-None-Match", `"v2"`}, 400},
		{[]string{"If-Match", `"v3"`, "If-None-Match", `*`}, 400},
		{[]string{"If-Match", `"v3"`}, 200},
		{[]string{"If-Match", `"v1", W/"v2" ,, "v3"`}, 200},
		{[]string{"If-Match", `"v1"`, "If-Match", `"v3"`}, 200},
		{[]string{"If-Match", `"v1", "v2"`}, 412},
	} {
		t.Run(strings.Join(c.headers, " "), func(t *testing.T) {
			t.Parallel()
			policies := withVersions(t, 3)
			answer := call(adminOf(policies), http.MethodPut, "/v1/policies/report-create", spec(40), append(c.headers, "Content-Type", "application/json")...)
			if answer.Code != c.status {
				t.Errorf("status %d, want %d: %s", answer.Code, c.status, answer.Body)
			}
			want := 3
			if c.status == http.StatusOK {
				want = 4
			}
			if got := len(policies.versions["report-create"]); got != want {
				t.Errorf("%d versions afterwards, want %d", got, want)
			}
			if c.status == http.StatusPreconditionFailed && !strings.Contains(answer.Body.String(), `"currentVersion":3`) {
				t.Errorf("a conflict without the version in force: %s", answer.Body)
			}
		})
	}
}

func TestPutOfAMissingPolicyWithIfMatchCreatesNothing(t *testing.T) {
	t.Parallel()
	for _, match := range []string{`"v3"`, `W/"v3"`, `"v1", "v2"`} {
		policies := new(stubPolicies)
		answer := call(adminOf(policies), http.MethodPut, "/v1/policies/report-create", spec(40), "Content-Type", "application/json", "If-Match", match)
		if answer.Code != http.StatusPreconditionFailed {
			t.Errorf("If-Match %s: status %d, want 412", match, answer.Code)
		}
		if len(policies.versions) > 0 {
			t.Errorf("If-Match %s created a policy", match)
		}
	}
}

func TestOfTwoParallelChangesOneWins(t *testing.T) {
	t.Parallel()
	policies := withVersions(t, 3)
	handler := adminOf(policies)
	var wait sync.WaitGroup
	statuses := make([]int, 2)
	for i := range statuses {
		wait.Go(func() {
			statuses[i] = call(handler, http.MethodPut, "/v1/policies/report-create", spec(40+i), "Content-Type", "application/json", "If-Match", `"v3"`).Code
		})
	}
	wait.Wait()
	if statuses[0]+statuses[1] != 200+412 {
		t.Errorf("statuses %v, want one 200 and one 412", statuses)
	}
	if got := len(policies.versions["report-create"]); got != 4 {
		t.Errorf("version %d is in force, want 4", got)
	}
}

func TestPutTellsTheAuditWhoAndWhich(t *testing.T) {
	t.Parallel()
	policies := new(stubPolicies)
	body := strings.TrimSuffix(spec(40), "}") + `,"reason":"launch","balances":"keep"}`
	answer := call(adminOf(policies), http.MethodPut, "/v1/policies/report-create", body,
		"Content-Type", "application/json", "If-None-Match", "*")
	if answer.Code != http.StatusCreated {
		t.Fatalf("status %d, want 201: %s", answer.Code, answer.Body)
	}
	put := policies.puts[0]
	if put.Actor != "operator" || put.Change.Reason != "launch" || put.RequestID == "" {
		t.Errorf("the audit hears actor %q, reason %q, request %q", put.Actor, put.Change.Reason, put.RequestID)
	}
	if got := answer.Header().Get("X-Request-Id"); got != put.RequestID {
		t.Errorf("the answer names request %q, the audit %q", got, put.RequestID)
	}
}

func TestPolicyBodiesAreBounded(t *testing.T) {
	t.Parallel()
	policies := new(stubPolicies)
	body := strings.TrimSuffix(spec(40), "}") + strings.Repeat(" ", 64<<10) + "}"
	answer := call(adminOf(policies), http.MethodPut, "/v1/policies/report-create", body, "Content-Type", "application/json", "If-None-Match", "*")
	if answer.Code != http.StatusRequestEntityTooLarge || len(policies.puts) > 0 {
		t.Errorf("status %d and %d puts, want 413 and none", answer.Code, len(policies.puts))
	}
}

// TestPagesCoverEveryPolicyOnce follows the links from the first page.
func TestPagesCoverEveryPolicyOnce(t *testing.T) {
	t.Parallel()
	policies := new(stubPolicies)
	change, err := policy.ParseChange([]byte(spec(40)))
	if err != nil {
		t.Fatal(err)
	}
	const count = 7
	for i := range count {
		if _, _, err := policies.Put(context.Background(), policy.Put{ID: fmt.Sprintf("p%d", i), Change: change}); err != nil {
			t.Fatal(err)
		}
	}
	seen := make(map[string]int)
	pages := 0
	for target := "/v1/policies?limit=3"; target != ""; pages++ {
		if pages > count {
			t.Fatal("the links never end")
		}
		answer := call(adminOf(policies), http.MethodGet, target, "")
		var page struct{ Policies []struct{ ID string } }
		if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		for _, p := range page.Policies {
			seen[p.ID]++
		}
		link := answer.Header().Get("Link")
		target, _, _ = strings.Cut(strings.TrimPrefix(link, "<"), ">")
	}
	if len(seen) != count || pages != 3 {
		t.Errorf("%d policies on %d pages, want %d on 3: %v", len(seen), pages, count, seen)
	}
}

func TestBadQueriesAreRefused(t *testing.T) {
	t.Parallel()
	handler := adminOf(withVersions(t, 1))
	for _, target := range []string{
		"/v1/policies?limit=0", "/v1/policies?limit=1001", "/v1/policies?limit=x", "/v1/policies?limit=1&limit=2",
		"/v1/policies?after=%00", "/v1/policies?plan=x", "/v1/policies?%zz", "/v1/policies/report-create?x=1",
		"/v1/policies/report-create/versions?after=-1", "/v1/policies/report-create/versions?after=99999999999",
	} {
		if problem := readProblem(t, call(handler, http.MethodGet, target, "")); problem.Status != http.StatusBadRequest {
			t.Errorf("%s: status %d, want 400", target, problem.Status)
		}
	}
}
