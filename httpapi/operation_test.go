package httpapi_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

// operationsOf serves operations beside a decider that must not be asked.
func operationsOf(operations *stubOperations) http.Handler {
	return httpapi.NewDecisions(httpapi.DecisionsConfig{Decider: always(policy.Decision{}), Operations: operations})
}

func TestOperationExchanges(t *testing.T) {
	t.Parallel()
	const one = "/internal/rate-decisions/op-1"
	report := reportCreate()
	stored := new(stubOperations)
	stored.remember("A", "op-1", underOperation("op-1", allowed(report, 35, 250_000)))
	stored.remember("", "op-1", underOperation("op-1", denied(report, 3, 100_000, 1_850_000)))

	settled := policy.Settled{AtMicros: nowMicros + 1, Parts: []policy.SettledPart{
		{Policy: "report-create", Version: 7, Charged: 5, Actual: 3, Applied: true},
		{Policy: "exports", Version: 1, Charged: 1, Actual: 1},
	}}
	replayed := settled
	replayed.Status = policy.SettleReplayed
	clamped := policy.Settled{AtMicros: nowMicros, Parts: []policy.SettledPart{
		{Policy: "report-create", Version: 7, Charged: 5, Actual: 500, Applied: true, Clamped: true},
	}}
	const actual = `{"verifiedAccount":"A","actualCost":3}`
	for _, e := range []exchange{
		{name: "get", handler: operationsOf(stored), method: http.MethodGet, target: one + "?verifiedAccount=A"},
		{name: "get-denied", handler: operationsOf(stored), method: http.MethodGet, target: one},
		{name: "get-unknown", handler: operationsOf(stored), method: http.MethodGet, target: one + "?verifiedAccount=B"},
		{name: "get-empty-account", handler: operationsOf(stored), method: http.MethodGet, target: one + "?verifiedAccount="},
		{name: "settle", handler: operationsOf(&stubOperations{settled: settled}), target: one + "/settlement", body: actual},
		{name: "settle-again", handler: operationsOf(&stubOperations{settled: replayed}), target: one + "/settlement", body: actual},
		{name: "settle-clamped", handler: operationsOf(&stubOperations{settled: clamped}), target: one + "/settlement", body: `{"actualCost":500}`},
		{name: "settle-conflict", handler: operationsOf(&stubOperations{settled: policy.Settled{Status: policy.SettleConflict}}), target: one + "/settlement", body: actual},
		{name: "settle-slots", handler: operationsOf(&stubOperations{settled: policy.Settled{Status: policy.SettleSlots}}), target: one + "/settlement", body: actual},
		{name: "settle-unknown", handler: operationsOf(&stubOperations{settled: policy.Settled{Status: policy.SettleUnknown}}), target: one + "/settlement", body: actual},
		{name: "settle-faulty", handler: operationsOf(new(stubOperations)), target: one + "/settlement", body: `{"actualCost":-1,"cost":1}`},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.name = "operation-" + e.name
			e.check(t)
		})
	}
}

// TestOperationIDsInPaths: any id can be asked about, percent-encoded once.
func TestOperationIDsInPaths(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("k", policy.TextBytesMax)
	for segment, id := range map[string]string{
		"op-1": "op-1", "a%2Fb": "a/b", "a%2fb%2F": "a/b/", "a%252Fb": "a%2Fb", "a%252Fb%2Fc": "a%2Fb/c", "a%20b+c": "a b+c",
		"%C3%A4": "ä", "a%3Fb%23c": "a?b#c", "batch": "batch", "settlement": "settlement", "a%2Fsettlement": "a/settlement", longest: longest,
	} {
		operations := new(stubOperations)
		operations.remember("A", id, underOperation("", of(allowed(reportCreate(), 35, 250_000))))
		handler := operationsOf(operations)
		if answer := call(handler, http.MethodGet, "/internal/rate-decisions/"+segment+"?verifiedAccount=A", ""); answer.Code != http.StatusOK {
			t.Errorf("GET %s: status %d, want 200: %s", segment, answer.Code, answer.Body)
		}
		answer := post(handler, "/internal/rate-decisions/"+segment+"/settlement", `{"verifiedAccount":"A","actualCost":0}`)
		want := policy.Settlement{Operation: policy.OperationKeyOf("", "A", id)}
		if answer.Code != http.StatusOK || !slices.Equal(operations.settlements, []policy.Settlement{want}) {
			t.Errorf("settle %s: status %d and %v, want that of %q", segment, answer.Code, operations.settlements, id)
		}
	}
}

func TestSlotExchanges(t *testing.T) {
	t.Parallel()
	live := operationsOf(&stubOperations{live: exampleSlot.ID})
	none := operationsOf(new(stubOperations))
	target := "/internal/slots/" + exampleSlot.ID.String()
	for _, e := range []exchange{
		{name: "release", handler: live, method: http.MethodDelete, target: target},
		{name: "release-ended", handler: none, method: http.MethodDelete, target: target},
		{name: "release-nothing", handler: live, method: http.MethodDelete, target: "/internal/slots/7"},
		{name: "renew", handler: live, target: target + "/renewal"},
		{name: "renew-object", handler: live, target: target + "/renewal", body: "{}"},
		{name: "renew-ended", handler: none, target: target + "/renewal"},
		{name: "renew-faulty", handler: live, target: target + "/renewal", body: `{"ttlSeconds":60}`},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.name = "slot-" + e.name
			e.check(t)
		})
	}
}

// usageDecider knows one caller's usage.
type usageDecider struct {
	*stubDecider

	usage policy.Usage
	asked *policy.Request
}

func (d *usageDecider) Usage(_ context.Context, request *policy.Request) (policy.Usage, error) {
	d.asked = request
	return d.usage, nil
}

// TestUsageExchanges: a key that was never used has all of its limit, and a
// reset that is not in the past.
func TestUsageExchanges(t *testing.T) {
	t.Parallel()
	report, site, perIP := reportCreate(), window("whole-site", 2, 1000), window("per-ip", 3, 100, policy.IP)
	trial := window("trial", 4, 10, policy.Account)
	trial.Mode = policy.Shadow
	usage := policy.Usage{
		AtMicros: nowMicros,
		Parts: []policy.DecisionPart{
			part(report, 40, 0, 0), part(trial, 0, 9_500_000, 9_500_000), part(site, 3, 0, 9_500_000),
		},
		Missing: []policy.Skipped{
			{Policy: perIP, Attribute: policy.IP},
			{Policy: window("sign-in", 1, 5, policy.TargetAccount), Attribute: policy.TargetAccount},
		},
	}
	unused := always(policy.Decision{})
	for _, e := range []exchange{
		{name: "usage", handler: decisionsOf(&usageDecider{stubDecider: unused, usage: usage}), target: "/internal/usage?verifiedAccount=A"},
		{name: "usage-none", handler: decisionsOf(&usageDecider{stubDecider: unused}), target: "/internal/usage?verifiedAccount=B"},
		{name: "usage-faulty", handler: decisionsOf(unused), target: "/internal/usage?plan=free&cost=1&ip=unknown"},
		{name: "usage-malformed", handler: decisionsOf(unused), target: "/internal/usage?%zz"},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.method = http.MethodGet
			e.check(t)
		})
	}
	decider := &usageDecider{stubDecider: unused}
	call(decisionsOf(decider), http.MethodGet, "/internal/usage?verifiedAccount=A%26B&ip=192.0.2.1", "")
	if values := decider.asked.Values; values[policy.Account] != "A&B" || values[policy.IP] != "192.0.2.1" {
		t.Errorf("the decider is asked of %q", values)
	}
}

// TestOtherMethodsOfOperations: each path names the methods that it has.
func TestOtherMethodsOfOperations(t *testing.T) {
	t.Parallel()
	handler := operationsOf(new(stubOperations))
	for target, allow := range map[string]string{
		"/internal/rate-decisions/batch":           "GET, HEAD, POST",
		"/internal/rate-decisions/op-1":            "GET, HEAD",
		"/internal/rate-decisions/a%2Fb":           "GET, HEAD",
		"/internal/rate-decisions/op-1/settlement": "POST",
		"/internal/slots/7":                        "DELETE",
		"/internal/slots/7/renewal":                "POST",
		"/internal/usage":                          "GET, HEAD",
	} {
		for _, method := range []string{http.MethodOptions, http.MethodPut, http.MethodPatch} {
			answer := call(handler, method, target, exampleRequest)
			if answer.Code != http.StatusMethodNotAllowed || answer.Header().Get("Allow") != allow {
				t.Errorf("%s %s: status %d, Allow %q, want 405 and %q", method, target, answer.Code, answer.Header().Get("Allow"), allow)
			}
		}
	}
}

// TestBadSettlementsAreRefused: nothing of them reaches the store.
func TestBadSettlementsAreRefused(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"actualCost":1,"actualCost":2}`:     http.StatusBadRequest,
		`{"actualCost":1} x`:                  http.StatusBadRequest,
		`{}`:                                  http.StatusBadRequest,
		``:                                    http.StatusBadRequest,
		strings.Repeat(" ", 16<<10) + "{}":    http.StatusRequestEntityTooLarge,
		`{"actualCost":1,"operationId":"op"}`: http.StatusBadRequest,
	} {
		operations := new(stubOperations)
		answer := post(operationsOf(operations), "/internal/rate-decisions/op-1/settlement", body)
		if problem := readProblem(t, answer); problem.Status != want || len(operations.settlements) > 0 {
			t.Errorf("%.40q: status %d and %d settlements, want %d and none", body, problem.Status, len(operations.settlements), want)
		}
	}
	if answer := post(operationsOf(new(stubOperations)), "/internal/rate-decisions/op-1/settlement?x=1", `{"actualCost":1}`); answer.Code != http.StatusBadRequest {
		t.Errorf("an unknown parameter: status %d, want 400", answer.Code)
	}
}
