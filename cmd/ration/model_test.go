package main

import (
	"errors"
	"net/http"
	"testing"

	"github.com/rationhq/ration/internal/memstore"
	"github.com/rationhq/ration/policy"
)

// model says what the program should answer: requests are matched by the
// domain's own rules and decided by the second reading of the semantics.
// Neither lanes nor stored functions have a part in it.
type model struct {
	*testing.T

	store     *memstore.Store
	installed map[string]map[int]*policy.Installed // by id and version
	numbers   map[int32]string
	set       *policy.Set
	told      map[policy.Key]outcome // decisions by operation
	waits     int64                  // the last decision's wait in microseconds
}

// operationRetention is long enough that no operation of a history ends.
const operationRetention = retentionMax

func newModel(t *testing.T) *model {
	t.Helper()
	const entriesMax = 1 << 20 // never full
	return &model{
		T: t, store: memstore.New(entriesMax), installed: map[string]map[int]*policy.Installed{},
		numbers: map[int32]string{}, told: map[policy.Key]outcome{},
	}
}

// put installs a version.
func (m *model) put(id, body string, replaces int, nowMicros int64) {
	m.Helper()
	change, err := policy.ParseChange([]byte(body))
	if err != nil {
		m.Fatalf("%s: %v", body, err)
	}
	installed, err := m.store.Install(m.Context(), id, change, replaces, nowMicros)
	if err != nil {
		m.Fatal(err)
	}
	if m.installed[id] == nil {
		m.installed[id] = map[int]*policy.Installed{}
	}
	m.installed[id][installed.Version] = installed
	m.numbers[installed.Number] = id
	policies, err := m.store.Policies(m.Context())
	if err != nil {
		m.Fatal(err)
	}
	generation, err := m.store.Generation(m.Context())
	if err != nil {
		m.Fatal(err)
	}
	m.set = policy.Compile(generation, policies)
}

func (m *model) find(number int32, version int) (*policy.Installed, error) {
	return m.installed[m.numbers[number]][version], nil
}

// statuses of the problems that a faultless program may answer here.
var statuses = map[policy.Reason]int{
	policy.ReasonInvalidRequest:  http.StatusBadRequest,
	policy.ReasonNoPolicy:        http.StatusNotFound,
	policy.ReasonNotFound:        http.StatusNotFound,
	policy.ReasonCostNotAllowed:  http.StatusUnprocessableEntity,
	policy.ReasonOperationReused: http.StatusUnprocessableEntity,
	"settlement-conflict":        http.StatusConflict,
	"settlement-of-slots":        http.StatusConflict,
}

func refused(reason policy.Reason) outcome {
	return outcome{Status: statuses[reason], Problem: string(reason)}
}

func (m *model) fault(err error) outcome {
	m.Helper()
	known, ok := errors.AsType[*policy.Error](err)
	if !ok {
		m.Fatal(err)
	}
	return refused(known.Reason)
}

// ask decides a request.
func (m *model) ask(body string, nowMicros int64) outcome {
	m.Helper()
	request, err := policy.ParseRequest([]byte(body))
	if err != nil {
		return m.fault(err)
	}
	var matched policy.Matched
	matchErr := m.set.Match(request, &matched)
	claim := policy.Claim{Stated: request.Cost, Peek: request.Peek}
	if request.OperationID != "" {
		claim.Operation = policy.OperationKeyOf("", request.Values[policy.Account], request.OperationID)
		claim.Content = policy.ContentOf(&request.Values)
	}
	undecided := func() outcome {
		if matchErr != nil {
			return m.fault(matchErr)
		}
		off := matched.Disabled
		return outcome{Status: http.StatusOK, Decision: &decisionReply{
			Allowed: true, Remaining: off.Spec.Limit.Capacity, RetryAfterSeconds: new(int64), PolicyVersion: off.Version,
			RetryAfterMillis: new(int64), Limit: off.Spec.Limit.Capacity, Policy: off.ID, Outcome: "decided", Source: "policy", Mode: "disabled",
		}}
	}
	if matchErr == nil {
		claim.Checks = matched.Checks
	}
	if len(claim.Checks) == 0 && claim.Operation == (policy.Key{}) {
		return undecided()
	}
	verdict := m.decide(claim, nowMicros)
	if verdict.Status == policy.ClaimUnknown {
		return undecided()
	}
	if verdict.Status == policy.ClaimReused {
		return refused(policy.ReasonOperationReused)
	}
	decision, err := verdict.Decision(request.OperationID, claim.Checks, m.find)
	if err != nil {
		m.Fatal(err)
	}
	m.waits = max(0, decision.RetryAfterMicros)
	told := decided(&decision)
	if claim.Operation != (policy.Key{}) && decision.Source == policy.FromStore {
		m.told[claim.Operation] = told
	}
	return told
}

func (m *model) decide(claim policy.Claim, nowMicros int64) policy.Verdict {
	m.Helper()
	claims := policy.Claims{
		Generation: m.set.Generation(), NowMicros: nowMicros,
		RetentionMicros: operationRetention.Microseconds(), Claims: []policy.Claim{claim},
	}
	var verdicts policy.Verdicts
	if err := m.store.DecideClaims(m.Context(), &claims, &verdicts); err != nil || verdicts.Stale {
		m.Fatalf("stale %t, %v", verdicts.Stale, err)
	}
	return verdicts.Verdicts[0]
}

// decided is a decision as it is answered.
func decided(d *policy.Decision) outcome {
	reply := &decisionReply{
		Allowed: d.Allowed, Remaining: d.Remaining, RetryAfterSeconds: seconds(d.RetryAfterMicros), PolicyVersion: d.Policy.Version,
		RetryAfterMillis: millis(d.RetryAfterMicros), Limit: d.Policy.Spec.Limit.Capacity, ResetAt: foretold(d.ResetAtMicros()),
		Policy: d.Policy.ID, Outcome: d.Outcome.String(), Source: d.Source.String(), OperationID: d.Detail.OperationID,
	}
	shadow := d.Policy.Spec.Mode == policy.Shadow
	if shadow {
		reply.Mode = "shadow"
	}
	for _, part := range d.Detail.Parts {
		if part.Slot.ID != (policy.SlotID{}) {
			reply.Slots = append(reply.Slots, slotReply{part.Slot.ID.String(), part.Policy.ID, exact(part.Slot.ExpiresAtMicros)})
		}
		if part.Policy.Spec.ShowsFigures() && (shadow || len(d.Detail.Parts) > 1) {
			reply.Policies = append(reply.Policies, partOf(part))
		}
	}
	status := http.StatusOK
	if !d.Allowed {
		status = http.StatusTooManyRequests
	}
	return outcome{Status: status, Decision: reply}
}

func partOf(part policy.DecisionPart) partReply {
	return partReply{
		Policy: part.Policy.ID, Version: part.Policy.Version, Limit: part.Policy.Spec.Limit.Capacity, Remaining: part.Remaining,
		RetryAfterMillis: millis(part.RetryAfterMicros), Allowed: part.Allowed, Mode: part.Policy.Spec.Mode.String(),
	}
}
