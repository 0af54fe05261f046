package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/rationhq/ration/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nowMicros is the instant of every stubbed decision: 2026-01-02T03:04:05Z.
const nowMicros = 1_767_323_045_000_000

// reportCreate is the policy of the design's example: 40 tokens, 20 a second.
func reportCreate() *policy.Installed {
	return installed("report-create", 7, 40, policy.Rate{N: 1, D: 50_000}, policy.Account, policy.Operation)
}

// window is a policy of limit tokens in a minute.
func window(id string, version int, limit int64, per ...policy.Attribute) *policy.Installed {
	p := installed(id, version, limit, policy.Rate{}, per...)
	p.Spec.Limit.Algorithm, p.Spec.Limit.SpanMicros = policy.FixedWindow, 60_000_000
	return p
}

func installed(id string, version int, capacity int64, rate policy.Rate, per ...policy.Attribute) *policy.Installed {
	return &policy.Installed{
		Number: 1, ID: id, Version: version, InstalledAtMicros: nowMicros,
		Spec: &policy.Spec{Per: per, Limit: policy.Limit{Capacity: capacity, Rate: rate}},
	}
}

// allowed and denied are decisions of a policy at nowMicros.
func allowed(p *policy.Installed, remaining, resetAfterMicros int64) policy.Decision {
	return policy.Decision{
		Policy: p, Allowed: true, Remaining: remaining,
		AtMicros: nowMicros, ResetAfterMicros: resetAfterMicros,
	}
}

func denied(p *policy.Installed, remaining, retryAfterMicros, resetAfterMicros int64) policy.Decision {
	d := allowed(p, remaining, resetAfterMicros)
	d.Allowed, d.RetryAfterMicros = false, retryAfterMicros
	return d
}

// part is a policy's own part of a decision.
func part(p *policy.Installed, remaining, retryAfterMicros, resetAfterMicros int64) policy.DecisionPart {
	return policy.DecisionPart{
		Policy: p, Allowed: retryAfterMicros == 0, Remaining: remaining,
		RetryAfterMicros: retryAfterMicros, ResetAfterMicros: resetAfterMicros,
	}
}

// of gives a decision the parts that it was made of.
func of(d policy.Decision, parts ...policy.DecisionPart) policy.Decision {
	d.Detail = &policy.Detail{Parts: parts}
	return d
}

// underOperation is a decision as the general path gives it to an operation
// id, or with "" as it was.
func underOperation(operationID string, d policy.Decision) policy.Decision {
	if operationID != "" {
		d = of(d, part(d.Policy, d.Remaining, d.RetryAfterMicros, d.ResetAfterMicros))
		d.Detail.OperationID = operationID
	}
	return d
}

// stubDecider answers by a function and keeps what it was asked.
type stubDecider struct {
	answer func(ctx context.Context, request *policy.Request) (policy.Decision, error)

	mu    sync.Mutex
	asked []*policy.Request
}

// always is a decider with one decision for everybody.
func always(decision policy.Decision) *stubDecider {
	return &stubDecider{answer: func(context.Context, *policy.Request) (policy.Decision, error) { return decision, nil }}
}

// failing is a decider that never decides.
func failing(err error) *stubDecider {
	return &stubDecider{answer: func(context.Context, *policy.Request) (policy.Decision, error) { return policy.Decision{}, err }}
}

func (s *stubDecider) Decide(ctx context.Context, request *policy.Request) (policy.Decision, error) {
	s.mu.Lock()
	s.asked = append(s.asked, request)
	s.mu.Unlock()
	return s.answer(ctx, request)
}

func (s *stubDecider) DecideBatch(ctx context.Context, requests []*policy.Request, results []policy.Result) {
	for i, request := range requests {
		results[i].Decision, results[i].Err = s.Decide(ctx, request)
	}
}

// Usage is empty: who tests it gives a decider of its own.
func (s *stubDecider) Usage(context.Context, *policy.Request) (policy.Usage, error) {
	return policy.Usage{}, nil
}

func (s *stubDecider) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// stubOperations has decided operations, one answer for settlements, and one
// live slot.
type stubOperations struct {
	mu          sync.Mutex
	decisions   map[policy.Key]policy.Decision
	settled     policy.Settled
	settlements []policy.Settlement
	live        policy.SlotID
}

func (s *stubOperations) FindOperation(_ context.Context, operation policy.Key) (policy.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	decision, known := s.decisions[operation]
	if !known {
		return policy.Decision{}, &policy.Error{Code: policy.CodeNotFound, Reason: policy.ReasonNotFound, Detail: "Nothing is decided under this operation id."}
	}
	decision.Source = policy.FromReplay
	return decision, nil
}

// remember stores a decision under an account's operation id.
func (s *stubOperations) remember(account, operationID string, decision policy.Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.decisions == nil {
		s.decisions = make(map[policy.Key]policy.Decision)
	}
	s.decisions[policy.OperationKeyOf("", account, operationID)] = decision
}

func (s *stubOperations) Settle(_ context.Context, settlement policy.Settlement) (policy.Settled, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settlements = append(s.settlements, settlement)
	return s.settled, nil
}

func (s *stubOperations) ReleaseSlot(_ context.Context, id policy.SlotID) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return id == s.live, nil
}

func (s *stubOperations) RenewSlot(_ context.Context, id policy.SlotID) (int64, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return nowMicros + 60_000_000, id == s.live, nil
}

// stubPolicies keeps policies in memory by the rules that Policies states.
type stubPolicies struct {
	mu       sync.Mutex
	versions map[string][]*policy.Installed
	puts     []policy.Put
	removals []policy.Removal
}

func (s *stubPolicies) Put(_ context.Context, put policy.Put) (*policy.Installed, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.puts = append(s.puts, put)
	history := s.versions[put.ID]
	if len(history) != put.Expected {
		return nil, false, &policy.Error{
			Code: policy.CodeConflict, Reason: policy.ReasonVersionConflict, Detail: "Another version is in force.",
		}
	}
	if len(history) > 0 && history[len(history)-1].Spec.Equal(put.Change.Spec) {
		return history[len(history)-1], false, nil
	}
	installed := &policy.Installed{ID: put.ID, Version: len(history) + 1, Spec: put.Change.Spec, Mode: put.Change.Spec.Mode, InstalledAtMicros: nowMicros}
	if s.versions == nil {
		s.versions = make(map[string][]*policy.Installed)
	}
	s.versions[put.ID] = append(history, installed)
	return installed, true, nil
}

func (s *stubPolicies) Get(ctx context.Context, id string) (*policy.Installed, error) {
	s.mu.Lock()
	version := len(s.versions[id])
	s.mu.Unlock()
	return s.Version(ctx, id, version)
}

func (s *stubPolicies) Version(_ context.Context, id string, version int) (*policy.Installed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < 1 || version > len(s.versions[id]) {
		return nil, &policy.Error{Code: policy.CodeNotFound, Reason: policy.ReasonNotFound, Detail: "There is no such policy."}
	}
	return s.versions[id][version-1], nil
}

func (s *stubPolicies) List(_ context.Context, after string, limit int) ([]*policy.Installed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var page []*policy.Installed
	for id, history := range s.versions {
		if id > after {
			page = append(page, history[len(history)-1])
		}
	}
	slices.SortFunc(page, func(a, b *policy.Installed) int { return strings.Compare(a.ID, b.ID) })
	return page[:min(limit, len(page))], nil
}

func (s *stubPolicies) Versions(_ context.Context, id string, after, limit int) ([]*policy.Installed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	history := s.versions[id]
	if len(history) == 0 {
		return nil, &policy.Error{Code: policy.CodeNotFound, Reason: policy.ReasonNotFound, Detail: "There is no such policy."}
	}
	page := history[min(after, len(history)):]
	return page[:min(limit, len(page))], nil
}

// call sends one request to a handler and gives its answer. Headers are given
// as name, value, name, value.
func call(handler http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

// post sends JSON.
func post(handler http.Handler, target, body string, headers ...string) *httptest.ResponseRecorder {
	return call(handler, http.MethodPost, target, body, append([]string{"Content-Type", "application/json"}, headers...)...)
}
