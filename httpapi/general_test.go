package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/rationhq/ration/policy"
)

// exampleSlot is the slot of every stubbed decision that takes one.
var exampleSlot = policy.Slot{
	ID:              policy.SlotID{0x0f, 0x1e, 0x2d, 0x3c, 0x4b, 0x5a, 0x69, 0x78, 0x87, 0x96, 0xa5, 0xb4, 0xc3, 0xd2, 0xe1, 0xf0},
	ExpiresAtMicros: nowMicros + 60_000_001,
}

// withOperationID is the example request under an operation id.
func withOperationID(id string) string {
	return fmt.Sprintf(`{"verifiedAccount":"A","operation":"report.create","cost":5,"operationId":%q}`, id)
}

// exports is a policy of two exports at a time.
func exports() *policy.Installed {
	p := window("exports", 1, 2, policy.Account)
	p.Spec.Limit.Algorithm = policy.Concurrency
	return p
}

// TestGeneralDecisionExchanges: what the answer tells beside the tightest
// policy's figures.
func TestGeneralDecisionExchanges(t *testing.T) {
	t.Parallel()
	report, perIP, site := reportCreate(), window("per-ip", 3, 100, policy.IP), window("whole-site", 2, 1000)
	trial := window("trial", 4, 10, policy.Account)
	trial.Mode = policy.Shadow

	slot := part(exports(), 1, 0, 60_000_001)
	slot.Slot = exampleSlot
	replayed := underOperation("op-1", denied(report, 3, 100_000, 1_850_000))
	replayed.Source = policy.FromReplay

	for _, e := range []exchange{
		{name: "operation-id", handler: decisionsOf(always(underOperation("op-1", allowed(report, 35, 250_000))))},
		{name: "denied-replay", handler: decisionsOf(always(replayed))},
		{name: "several", handler: decisionsOf(always(of(
			allowed(report, 35, 250_000), part(perIP, 12, 0, 9_500_000), part(report, 35, 0, 250_000), part(site, 990, 0, 9_500_000),
		)))},
		{name: "several-denied", handler: decisionsOf(always(of(
			denied(perIP, 3, 9_500_000, 9_500_000), part(perIP, 3, 9_500_000, 9_500_000), part(report, 2, 150_000, 1_900_000), part(trial, 0, policy.Never, 0),
		)))},
		{name: "several-denied-hidden", handler: decisionsOf(always(of(
			denied(site, 0, 9_500_000, 9_500_000), part(report, 35, 0, 250_000), part(site, 0, 9_500_000, 9_500_000),
		)))},
		{name: "shadow", handler: decisionsOf(always(of(allowed(trial, 0, 9_500_000), part(trial, 0, 9_500_000, 9_500_000))))},
		{name: "window", handler: decisionsOf(always(of(allowed(perIP, 99, 9_500_000), part(perIP, 99, 0, 9_500_000))))},
		{name: "window-denied", handler: decisionsOf(always(of(denied(perIP, 3, 4_200_000, 9_500_000), part(perIP, 3, 4_200_000, 9_500_000))))},
		{name: "slot", handler: decisionsOf(always(of(allowed(exports(), 1, 60_000_001), slot)))},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.name = "general-" + e.name
			e.body = exampleRequest
			e.check(t)
		})
	}
}

// TestAnswersAreSmall: in the common case an answer is one small packet with
// its headers.
func TestAnswersAreSmall(t *testing.T) {
	t.Parallel()
	const bytesMax = 400
	decision := underOperation("8e03978e-40d5-43e8-bc93-6894a57f9324", denied(reportCreate(), 3, 100_000, 1_850_000))
	answer := post(decisionsOf(always(decision)), "/internal/rate-decisions", exampleRequest)
	if got := answer.Body.Len(); got >= bytesMax {
		t.Errorf("%d bytes, want less than %d: %s", got, bytesMax, answer.Body)
	}
}

// TestOperationIDsReachTheDecider: by header or body, quoted or bare, in any
// spelling of the same request.
func TestOperationIDsReachTheDecider(t *testing.T) {
	t.Parallel()
	const plain = `{"verifiedAccount":"A","operation":"report.create","cost":5}`
	for _, c := range []struct {
		body    string
		headers []string
	}{
		{withOperationID("op-1"), nil},
		{` { "operationId" : "op-1" , "cost":5, "operation":"report.create","verifiedAccount":"\u0041"} `, nil},
		{plain, []string{"Idempotency-Key", `"op-1"`}},
		{plain, []string{"idempotency-key", `op-1`}},
		{withOperationID("op-1"), []string{"Idempotency-Key", `"op-1"`}},
	} {
		var got policy.Request
		decider := &stubDecider{answer: func(_ context.Context, request *policy.Request) (policy.Decision, error) {
			got = *request
			return underOperation(request.OperationID, allowed(reportCreate(), 35, 250_000)), nil
		}}
		if answer := post(decisionsOf(decider), "/internal/rate-decisions", c.body, c.headers...); answer.Code != http.StatusOK {
			t.Errorf("%s %v: status %d: %s", c.body, c.headers, answer.Code, answer.Body)
		}
		want := policy.Request{OperationID: "op-1", Cost: 5}
		want.Values[policy.Account], want.Values[policy.Operation] = "A", "report.create"
		if got != want {
			t.Errorf("%s %v: the decider is asked %+v, want %+v", c.body, c.headers, got, want)
		}
	}
}

func TestFaultyOperationIDsAreNeverDecided(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body    string
		headers []string
	}{
		{exampleRequest, []string{"Idempotency-Key", ""}},
		{exampleRequest, []string{"Idempotency-Key", `""`}},
		{exampleRequest, []string{"Idempotency-Key", "a b"}},
		{exampleRequest, []string{"Idempotency-Key", "a", "Idempotency-Key", "a"}},
		{withOperationID("op-1"), []string{"Idempotency-Key", "op-2"}},
		{`{"verifiedAccount":"A","operation":"report.create","peek":true}`, []string{"Idempotency-Key", "op-1"}},
	} {
		decider := always(allowed(reportCreate(), 35, 250_000))
		answer := post(decisionsOf(decider), "/internal/rate-decisions", c.body, c.headers...)
		if problem := readProblem(t, answer); problem.Status != http.StatusBadRequest || decider.calls() > 0 {
			t.Errorf("%s %v: status %d after %d decisions, want 400 after none", c.body, c.headers, problem.Status, decider.calls())
		}
	}
}
