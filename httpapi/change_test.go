package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/rationhq/ration/policy"
)

// DryRun finds 12 live balances, whatever changes.
func (s *stubPolicies) DryRun(ctx context.Context, put policy.Put) (*policy.DryRun, error) {
	run := &policy.DryRun{Balances: policy.DryBalances{Live: 12, Clamped: 3, Denied: 1}}
	before, err := s.Get(ctx, put.ID)
	if err == nil {
		run.Before = before
	}
	if run.Before == nil && put.Expected != 0 || run.Before != nil && run.Before.Version != put.Expected {
		return nil, &policy.Error{Code: policy.CodeConflict, Reason: policy.ReasonVersionConflict, Detail: "Another version is in force."}
	}
	if put.Change.Balances == policy.Restart {
		run.Restarts = []string{"/per"}
	}
	return run, nil
}

func (s *stubPolicies) Delete(_ context.Context, removal policy.Removal) (*policy.Installed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	history := s.versions[removal.ID]
	if len(history) != removal.Expected {
		return nil, &policy.Error{Code: policy.CodeConflict, Reason: policy.ReasonVersionConflict, Detail: "Another version is in force."}
	}
	tombstone := *history[len(history)-1]
	tombstone.Version, tombstone.Deleted = tombstone.Version+1, true
	s.versions[removal.ID] = append(history, &tombstone)
	s.removals = append(s.removals, removal)
	return &tombstone, nil
}

func TestChangeExchanges(t *testing.T) {
	t.Parallel()
	const one, json = "/v1/policies/report-create", "application/json"
	match := []string{"Content-Type", json, "If-Match", `"v3"`}
	for _, e := range []exchange{
		{name: "dry-change", method: http.MethodPut, target: one + "?dryRun=true", body: spec(40), headers: match},
		{name: "dry-create", method: http.MethodPut, target: "/v1/policies/new?dryRun=true", body: spec(40), headers: []string{"Content-Type", json, "If-None-Match", "*"}},
		{name: "dry-restart", method: http.MethodPut, target: one + "?dryRun=true", body: strings.Replace(spec(30), `{"match"`, `{"balances":"restart","start":"empty","match"`, 1), headers: match},
		{name: "dry-stale", method: http.MethodPut, target: one + "?dryRun=true", body: spec(40), headers: []string{"Content-Type", json, "If-Match", `"v2"`}},
		{name: "dry-impossibly", method: http.MethodPut, target: one + "?dryRun=true", body: spec(0), headers: match},
		{name: "dry-unconditionally", method: http.MethodPut, target: one + "?dryRun=true", body: spec(40)},
		{name: "dry-perhaps", method: http.MethodPut, target: one + "?dryRun=perhaps", body: spec(40), headers: match},
		{name: "dry-and-wait", method: http.MethodPut, target: one + "?dryRun=true&waitForInstall=5s", body: spec(40), headers: match},
		{name: "rollback", method: http.MethodPost, target: one + "/rollback", body: `{"version":1}`, headers: match},
		{name: "rollback-dry", method: http.MethodPost, target: one + "/rollback?dryRun=true", body: `{"version":1,"balances":"scale"}`, headers: match},
		{name: "rollback-unknown", method: http.MethodPost, target: one + "/rollback", body: `{"version":9}`, headers: match},
		{name: "rollback-faulty", method: http.MethodPost, target: one + "/rollback", body: `{"balances":"no","to":1}`, headers: match},
		{name: "rollback-stale", method: http.MethodPost, target: one + "/rollback", body: `{"version":1}`, headers: []string{"Content-Type", json, "If-Match", `"v2"`}},
		{name: "rollback-unconditionally", method: http.MethodPost, target: one + "/rollback", body: `{"version":1}`},
		{name: "delete", method: http.MethodDelete, target: one + "?reason=gone", headers: match},
		{name: "delete-stale", method: http.MethodDelete, headers: []string{"If-Match", `"v2"`}},
		{name: "delete-none", method: http.MethodDelete, headers: []string{"If-None-Match", `*`}},
		{name: "delete-unconditionally", method: http.MethodDelete},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			policies := withVersions(t, 3)
			e.name, e.handler = "policy-"+e.name, adminOf(policies)
			if e.target == "" {
				e.target = one
			}
			e.check(t)
			if changed := len(policies.puts) + len(policies.removals); strings.Contains(e.target, "dryRun") && changed > 0 {
				t.Errorf("%d changes were made by trying", changed)
			}
		})
	}
}

func TestWhoChangesAPolicyIsToldToTheStore(t *testing.T) {
	t.Parallel()
	policies := withVersions(t, 3)
	handler := adminOf(policies)
	post(handler, "/v1/policies/report-create/rollback", `{"version":1,"reason":"too tight"}`, "If-Match", `"v3"`, "X-Request-Id", "r1")
	call(handler, http.MethodDelete, "/v1/policies/report-create?reason=gone", "", "If-Match", `"v4"`, "X-Request-Id", "r2")
	if len(policies.puts) != 1 || len(policies.removals) != 1 {
		t.Fatalf("%d puts, %d removals", len(policies.puts), len(policies.removals))
	}
	put, removal := policies.puts[0], policies.removals[0]
	if put.Actor != "operator" || put.RequestID != "r1" || put.Change.Reason != "too tight" || put.Expected != 3 {
		t.Errorf("the rollback: %+v", put)
	}
	if want := (policy.Removal{Author: policy.Author{Actor: "operator", Role: policy.Admin, RequestID: "r2"}, ID: "report-create", Expected: 4, Reason: "gone"}); removal != want {
		t.Errorf("the removal: %+v", removal)
	}
}

// Whatever a caller writes into a query, the store is not asked to keep what it
// cannot.
func TestReasonsOfChangesWithoutABodyAreText(t *testing.T) {
	t.Parallel()
	policies := withVersions(t, 3)
	handler := adminOf(policies)
	for _, target := range []string{
		"/v1/policies/report-create?", "/v1/policies/report-create/overrides?verifiedAccount=A&", "/v1/kill-switch?prefix=&",
	} {
		for _, reason := range []string{"a%00", "%ff", "%ed%a0%80", strings.Repeat("a", 1001), "a&reason=b"} {
			answer := call(handler, http.MethodDelete, target+"reason="+reason, "", "If-Match", `"v3"`)
			if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "reason") {
				t.Errorf("%sreason=%.9s: %d %s", target, reason, answer.Code, answer.Body)
			}
		}
	}
	if len(policies.removals) > 0 {
		t.Errorf("removed: %+v", policies.removals)
	}
}
