package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// An operator tries a limit out, reads who it would have hit, and enforces it.
// Accounts are named to him, and neither in metrics nor in the log.
func TestAShadowIsReportedToOperators(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	one := start(t, append(named(db, "one"), "RATION_LOG_LEVEL=debug"), "serve")
	two := start(t, named(db, "two"), "serve")
	one.put(t, "p", slow("op", 2, `"mode":"shadow",`), 0)
	eventually(t, "the other instance knows the policy", func() bool { return two.metric(t, `ration_policy_version{policy="p"}`) == "1" })
	for range 3 {
		one.mustAsk(t, request("op", "account-of-ann"))
		two.mustAsk(t, request("op", "account-of-bob"))
	}
	for range 2 {
		two.mustAsk(t, request("op", "account-of-bob"))
	}
	two.stop() // reports the rest
	report := func() string {
		t.Helper()
		status, _, content, err := one.call(http.MethodGet, one.admin+"/v1/policies/p/shadow-report", "")
		if err != nil || status != http.StatusOK {
			t.Fatalf("%d %s (%v)", status, content, err)
		}
		return string(content)
	}
	got := report()
	for _, want := range []string{
		`"version":1,"decided":8,"denied":4,"deniedOthers":0,"keyCount":2,`,
		`"who":{"account": "account-of-bob"},"denied":3,`, `"who":{"account": "account-of-ann"},"denied":1,`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the report lacks %s:\n%s", want, got)
		}
	}
	if denied := one.metric(t, `ration_decisions_total{outcome="shadow_denied",policy="p",source="store"}`); denied != "1" {
		t.Errorf("%s denials of the shadow are counted by the instance that had one", denied)
	}
	_, _, metrics, err := one.call(http.MethodGet, one.metrics+"/metrics", "")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"the metrics": string(metrics), "the log": one.log()} {
		if strings.Contains(text, "account-of") {
			t.Errorf("%s name an account", name)
		}
	}

	one.put(t, "p", slow("op", 2, ""), 1)
	if a := one.mustAsk(t, request("op", "account-of-ann")); a.Allowed {
		t.Errorf("what was used in the shadow does not count: %+v", a)
	}
	if got := report(); !strings.Contains(got, `"version":2,"decided":0,"denied":0,`) {
		t.Errorf("the report on the version that enforces: %s", got)
	}
	status, _, content, err := one.call(http.MethodGet, fmt.Sprintf("%s/v1/policies/p/shadow-report?version=%d", one.admin, 1), "")
	if err != nil || status != http.StatusOK || !strings.Contains(string(content), `"denied":4,`) {
		t.Errorf("the report on the version before: %d %s (%v)", status, content, err)
	}
}
