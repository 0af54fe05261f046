package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

const exampleRequest = `{"verifiedAccount":"A","operation":"report.create","cost":5,"policyVersion":7}`

func decisionsOf(decider httpapi.Decider) http.Handler {
	return httpapi.NewDecisions(httpapi.DecisionsConfig{Decider: decider})
}

func TestDecisionExchanges(t *testing.T) {
	t.Parallel()
	report := reportCreate()
	disabled := reportCreate()
	disabled.Mode = policy.Disabled
	slow := installed("slow", 1, 2, policy.Rate{N: 1, D: 100_000_000}, policy.IP)
	signIn := installed("sign-in", 2, 5, policy.Rate{N: 1, D: 60_000_000}, policy.TargetAccount)
	disclosed := installed("whole-site", 3, 1000, policy.Rate{N: 3, D: 1_000_000})
	disclosed.Spec.Disclose = true
	fromPolicy := allowed(disabled, 40, 0)
	fromPolicy.Source, fromPolicy.AtMicros = policy.FromPolicy, 0

	withReset := func(reset httpapi.ResetHeader) http.Handler {
		return httpapi.NewDecisions(httpapi.DecisionsConfig{Decider: always(denied(report, 3, 100_000, 1_850_000)), ResetHeader: reset})
	}
	jittered := httpapi.NewDecisions(httpapi.DecisionsConfig{
		Site:    httpapi.Site{Jitter: 0.10, Random: func() float64 { return 0.5 }},
		Decider: always(denied(slow, 0, 100_000_000, 200_000_000)),
	})
	for _, e := range []exchange{
		{name: "allowed", handler: decisionsOf(always(allowed(report, 35, 250_000)))},
		{name: "allowed-full", handler: decisionsOf(always(allowed(report, 40, 0)))},
		{name: "denied", handler: decisionsOf(always(denied(report, 3, 100_000, 1_850_000)))},
		{name: "denied-never", handler: decisionsOf(always(denied(report, 40, policy.Never, 0)))},
		{name: "denied-jittered", handler: jittered},
		{name: "denied-hidden", handler: decisionsOf(always(denied(signIn, 0, 59_000_001, 299_000_000)))},
		{name: "allowed-disclosed", handler: decisionsOf(always(allowed(disclosed, 998, 666_667)))},
		{name: "allowed-disabled", handler: decisionsOf(always(fromPolicy))},
		{name: "denied-epoch", handler: withReset(httpapi.ResetEpoch)},
		{name: "denied-off", handler: withReset(httpapi.ResetOff)},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.body = exampleRequest
			e.check(t)
		})
	}
}

func TestProblemExchanges(t *testing.T) {
	t.Parallel()
	fails := func(code policy.Code, reason policy.Reason, detail string) http.Handler {
		return decisionsOf(failing(&policy.Error{Code: code, Reason: reason, Detail: detail, Cause: errors.New("secret cause")}))
	}
	unused := decisionsOf(failing(errors.New("the decider must not be asked")))
	for _, e := range []exchange{
		{name: "no-policy", handler: fails(policy.CodeNotFound, policy.ReasonNoPolicy, "No policy matches this request.")},
		{name: "cost-not-allowed", handler: fails(policy.CodeInvalid, policy.ReasonCostNotAllowed, "No matching policy charges a stated cost.")},
		{name: "policy-behind", handler: fails(policy.CodeConflict, policy.ReasonPolicyBehind, "Version 7 is not in force yet.")},
		{name: "policy-unnamed", handler: fails(policy.CodeInvalid, policy.ReasonPolicyUnnamed, "Two policies match.")},
		{name: "too-many-policies", handler: fails(policy.CodeInvalid, policy.ReasonTooManyPolicies, "33 policies match.")},
		{name: "operation-id-reused", handler: fails(policy.CodeInvalid, policy.ReasonOperationReused, "Another request has this operation id.")},
		{name: "operation-in-progress", handler: fails(policy.CodeConflict, policy.ReasonOperationInProgress, "The first is not done.")},
		{name: "store-unavailable", handler: fails(policy.CodeUnavailable, policy.ReasonStoreUnavailable, "The store gives no answer.")},
		{name: "overloaded", handler: fails(policy.CodeOverloaded, policy.ReasonOverloaded, "The queue is full.")},
		{name: "deadline", handler: decisionsOf(failing(context.DeadlineExceeded))},
		{name: "internal", handler: decisionsOf(failing(errors.New("secret cause")))},
		{name: "two-operation-ids", handler: unused, body: withOperationID("op-2"), headers: []string{"Content-Type", "application/json", "Idempotency-Key", `"op-1"`}},
		{name: "faults", handler: unused, body: `{"verifiedAccount":"","cost":-1,"costt":5}`},
		{name: "content-type", handler: unused, headers: []string{"Content-Type", "text/plain"}},
		{name: "query", handler: unused, target: "/internal/rate-decisions?peek=true"},
		{name: "method", handler: unused, method: http.MethodOptions},
		{name: "path", handler: unused, target: "/internal/nothing"},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.name = "problem-" + e.name
			if e.body == "" {
				e.body = exampleRequest
			}
			e.check(t)
		})
	}
}

func TestBatchExchange(t *testing.T) {
	t.Parallel()
	report := reportCreate()
	decider := &stubDecider{answer: func(_ context.Context, request *policy.Request) (policy.Decision, error) {
		switch request.Values[policy.Account] {
		case "A":
			return underOperation(request.OperationID, allowed(report, 35, 250_000)), nil
		case "B":
			return denied(report, 3, 100_000, 1_850_000), nil
		}
		return policy.Decision{}, &policy.Error{Code: policy.CodeUnavailable, Reason: policy.ReasonStoreUnavailable, Detail: "The store gives no answer."}
	}}
	exchange{
		name: "batch", handler: decisionsOf(decider), target: "/internal/rate-decisions/batch",
		body: `{"decisions":[{"verifiedAccount":"A","operation":"report.create"},` +
			`{"verifiedAccount":"X","operation":"report.create","cost":0},` +
			`{"verifiedAccount":"B","operation":"report.create"},` +
			`{"verifiedAccount":"A","operation":"report.create","operationId":"op-1"},` +
			`{"verifiedAccount":"C","operation":"report.create"}]}`,
	}.check(t)
	if decider.calls() != 4 {
		t.Errorf("the decider was asked %d times, want 4: for the items that are requests", decider.calls())
	}
}

// A request's own deadline is the decider's to keep.
func TestDeadlineMillisReachTheDecider(t *testing.T) {
	t.Parallel()
	const body = `{"verifiedAccount":"A","operation":"report.create","deadlineMillis":20}`
	for path, sent := range map[string]string{"": body, "/batch": `{"decisions":[` + body + `]}`} {
		var got int
		post(decisionsOf(&stubDecider{answer: func(_ context.Context, request *policy.Request) (policy.Decision, error) {
			got = request.DeadlineMillis
			return allowed(reportCreate(), 35, 250_000), nil
		}}), "/internal/rate-decisions"+path, sent)
		if got != 20 {
			t.Errorf("%s: the decider was given %d ms, want 20", path, got)
		}
	}
}

func TestPanicIsAProblem(t *testing.T) {
	t.Parallel()
	decider := &stubDecider{answer: func(context.Context, *policy.Request) (policy.Decision, error) { panic("secret state") }}
	exchange{name: "problem-panic", handler: decisionsOf(decider), body: exampleRequest}.check(t)
}

// TestCausesAreLoggedUnderTheRequest holds that what a caller may not see can
// be found by the id that it does see.
func TestCausesAreLoggedUnderTheRequest(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	handler := httpapi.NewDecisions(httpapi.DecisionsConfig{
		Site:    httpapi.Site{Logger: slog.New(slog.NewJSONHandler(&log, nil))},
		Decider: failing(errors.New("secret cause")),
	})
	answer := post(handler, "/internal/rate-decisions", exampleRequest)
	id := answer.Header().Get("X-Request-Id")
	if id == "" || !strings.Contains(answer.Body.String(), `"instance":"`+id+`"`) {
		t.Errorf("the problem does not name request %q: %s", id, answer.Body)
	}
	if !strings.Contains(log.String(), "secret cause") || !strings.Contains(log.String(), id) {
		t.Errorf("the log does not name the cause and request %q: %s", id, log.String())
	}
	if strings.Contains(answer.Body.String(), "secret") {
		t.Errorf("the cause was sent: %s", answer.Body)
	}
}

func TestRequestIDIsEchoedOnlyWhenHarmless(t *testing.T) {
	t.Parallel()
	handler := decisionsOf(always(allowed(reportCreate(), 35, 250_000)))
	long := strings.Repeat("x", 129)
	for given, want := range map[string]string{
		"abc-1": "abc-1", "": "", "a b": "", "a\x7f": "", "ä": "", long: "", long[1:]: long[1:],
	} {
		answer := post(handler, "/internal/rate-decisions", exampleRequest, "X-Request-Id", given)
		if got := answer.Header().Get("X-Request-Id"); got != want {
			t.Errorf("X-Request-Id %q is answered by %q, want %q", given, got, want)
		}
	}
}

func TestAnswerStaysShort(t *testing.T) {
	t.Parallel()
	p := reportCreate()
	p.ID = "a-policy-with-a-name-of-sixty-four-bytes-0123456789012345678901234"
	answer := post(decisionsOf(always(denied(p, 3, 123_456_789_012, 123_456_789_012_345))), "/internal/rate-decisions", exampleRequest)
	if answer.Body.Len() >= 400 {
		t.Errorf("the answer has %d bytes, want under 400: %s", answer.Body.Len(), answer.Body)
	}
	var decoded map[string]any
	if err := json.Unmarshal(answer.Body.Bytes(), &decoded); err != nil {
		t.Error(err)
	}
}
