package limiter_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rationhq/ration/internal/memstore"
	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/policy"
)

// The ways to the store, as a sent call names them.
const (
	take         = "take"
	takeNewWait  = "take_new wait"
	takeNewSkip  = "take_new skip"
	takeNewAlone = "take_new alone"
	recovery     = "recover"
)

// sentCall is one call as it came to the store.
type sentCall struct {
	function string
	batch    policy.Batch
	claims   policy.Claims // of decide
}

// store is memstore behind sessions that a test can watch, stop and break.
type store struct {
	*memstore.Store

	nowMicros func() int64

	mu      sync.Mutex
	sent    []sentCall
	open    int           // sessions not closed
	stopped chan struct{} // calls wait until it is closed
	meets   func(sentCall) error
	status  func(sentCall, policy.Key) policy.AskStatus
	becomes func(sentCall, *policy.Claim) policy.ClaimStatus

	versions []*policy.Installed // all that there ever were
	finds    int                 // how often one of them was asked for

	loads     int
	loadFault error
	overrides map[string]map[policy.Key]policy.Override // by policy id

	connects     int
	connectFault error

	otherRecovers bool

	reported    []policy.ShadowSeen
	reportFault error
}

// newStore makes a store whose clock is the bubble's, or the machine's.
func newStore() *store {
	return &store{
		Store:     memstore.New(1 << 20),
		nowMicros: func() int64 { return time.Now().UnixMicro() },
		meets:     func(sentCall) error { return nil },
		status:    func(sentCall, policy.Key) policy.AskStatus { return policy.Answered },
		becomes:   func(sentCall, *policy.Claim) policy.ClaimStatus { return policy.ClaimDecided },
	}
}

// install puts a token bucket in force that matches the operation id, with
// members beside the usual ones. A request may state its cost unless they say
// otherwise.
func (s *store) install(t testing.TB, id string, capacity int, members string) *policy.Installed {
	t.Helper()
	if !strings.Contains(members, "costs") {
		members += `, "costs": {"max": 1000}`
	}
	return s.installBody(t, id, fmt.Sprintf(`{"match": {"operations": [%q]}, "per": ["account"],
		"limit": {"algorithm": "token_bucket", "capacity": %d, "refillTokens": 1, "refillSeconds": 1}%s}`, id, capacity, members))
}

// installBody puts a policy in force as it stands.
func (s *store) installBody(t testing.TB, id, body string) *policy.Installed {
	t.Helper()
	change, err := policy.ParseChange([]byte(body))
	if err != nil {
		t.Fatalf("policy %s: %v", id, err)
	}
	version := 0
	policies, _ := s.Policies(t.Context())
	for _, known := range policies {
		if known.ID == id {
			version = known.Version
		}
	}
	installed, err := s.Install(t.Context(), id, change, version, s.nowMicros())
	if err != nil {
		t.Fatalf("install %s: %v", id, err)
	}
	s.versions = append(s.versions, installed)
	return installed
}

// stop makes further calls wait until the returned function is called.
func (s *store) stop() (resume func()) {
	stopped := make(chan struct{})
	s.mu.Lock()
	s.stopped = stopped
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.stopped = nil
		s.mu.Unlock()
		close(stopped)
	}
}

// breaks lets each further call end in the error that meets gives.
func (s *store) breaks(meets func(sentCall) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meets = meets
}

// leaves lets further calls leave asks undecided.
func (s *store) leaves(status func(sentCall, policy.Key) policy.AskStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// calls gives what was sent since the last time.
func (s *store) calls() []sentCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.sent
	s.sent = nil
	return sent
}

// functions names the calls since the last time.
func (s *store) functions() []string {
	var names []string
	for _, c := range s.calls() {
		names = append(names, c.function)
	}
	return names
}

// call notes a call and answers from memory.
func (s *store) call(ctx context.Context, function string, batch *policy.Batch, answers *policy.Answers) error {
	c := sentCall{function: function, batch: *batch}
	c.batch.Asks = slices.Clone(batch.Asks)
	s.mu.Lock()
	status := s.status
	s.mu.Unlock()
	if err := s.meet(c); err != nil {
		return err
	}
	return s.answer(ctx, c, status, answers)
}

// meet notes a call, waits while the store is stopped, and gives the error
// that the call ends in.
func (s *store) meet(c sentCall) error {
	s.mu.Lock()
	s.sent = append(s.sent, c)
	stopped, meets := s.stopped, s.meets
	s.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
	return meets(c)
}

// answer decides what status leaves to be decided.
func (s *store) answer(
	ctx context.Context, c sentCall, status func(sentCall, policy.Key) policy.AskStatus, answers *policy.Answers,
) error {
	decided := c.batch
	decided.NowMicros = s.nowMicros()
	decided.Asks = nil
	statuses := make([]policy.AskStatus, len(c.batch.Asks))
	for i, ask := range c.batch.Asks {
		if statuses[i] = status(c, ask.Key); statuses[i] == policy.Answered {
			decided.Asks = append(decided.Asks, ask)
		}
	}
	var inMemory policy.Answers
	if err := s.Decide(ctx, &decided, &inMemory); err != nil {
		return fault(policy.StoreFaulty)
	}
	answers.Stale, answers.NowMicros, answers.Asks = inMemory.Stale, inMemory.NowMicros, answers.Asks[:0]
	for i := range c.batch.Asks {
		if answers.Stale {
			break
		}
		if statuses[i] != policy.Answered {
			answers.Asks = append(answers.Asks, policy.Answer{Status: statuses[i]})
			continue
		}
		answers.Asks = append(answers.Asks, inMemory.Asks[0])
		inMemory.Asks = inMemory.Asks[1:]
	}
	return nil
}

// fault is a call of the store that ended so.
func fault(f policy.StoreFault) error {
	return &policy.StoreError{Fault: f, Doing: "decide", Cause: fmt.Errorf("the test wants %s", f)}
}

// Load is the limiter's view of the policies.
func (s *store) Load(ctx context.Context, since int64) (int64, []*policy.Installed, error) {
	s.mu.Lock()
	s.loads++
	failure := s.loadFault
	s.mu.Unlock()
	if failure != nil {
		return 0, nil, failure
	}
	policies, _ := s.Policies(ctx)
	generation, _ := s.Generation(ctx)
	if generation == since {
		policies = nil
	}
	for i, installed := range policies {
		if overrides := s.overrides[installed.ID]; overrides != nil {
			overridden := *installed
			overridden.Overrides = overrides
			policies[i] = &overridden
		}
	}
	return generation, policies, nil
}

// fails lets further loads fail, nil no more.
func (s *store) fails(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loadFault = err
}

// loaded counts the loads.
func (s *store) loaded() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads
}

// session is one connection to the store.
type session struct{ store *store }

func (s *store) newSession() limiter.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	return &session{store: s}
}

func (c *session) Take(ctx context.Context, batch *policy.Batch, answers *policy.Answers) error {
	return c.store.call(ctx, take, batch, answers)
}

func (c *session) TakeNew(ctx context.Context, hold policy.Hold, batch *policy.Batch, answers *policy.Answers) error {
	return c.store.call(ctx, "take_new "+hold.String(), batch, answers)
}

// Connect is not among the calls; the store counts how often it was tried.
func (c *session) Connect(context.Context) error {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.store.connects++
	return c.store.connectFault
}

// Recover finds the loss, unless another instance has.
func (c *session) Recover(context.Context) (bool, error) {
	err := c.store.recover()
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	return err == nil && !c.store.otherRecovers, err
}

// recoveredByOther says whether further losses are another instance's to record.
func (s *store) recoveredByOther(other bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.otherRecovers = other
}

func (s *store) recover() error {
	c := sentCall{function: recovery}
	s.mu.Lock()
	s.sent = append(s.sent, c)
	meets := s.meets
	s.mu.Unlock()
	return meets(c)
}

func (c *session) Close() {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.store.open--
}

// connectsIn lets further connecting end so, and gives how often it was tried.
func (s *store) connectsIn(err error) (tried int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connectFault = err
	return s.connects
}
