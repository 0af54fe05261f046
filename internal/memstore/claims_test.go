package memstore_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rationhq/ration/policy"
)

// limited is a policy of a limit on a span of 60 seconds.
func limited(a policy.Algorithm, capacity int64) policy.Spec {
	return policy.Spec{Limit: policy.Limit{Algorithm: a, Capacity: capacity, SpanMicros: 60 * second}}
}

// claim asks for cost tokens of a key.
func (p *place) claim(nowMicros int64, key byte, cost int64, operation policy.Key) policy.Verdict {
	p.Helper()
	verdict, err := p.tryClaim(nowMicros, key, cost, operation)
	if err != nil {
		p.Fatal(err)
	}
	return verdict
}

// tryClaim is claim for goroutines, which may not end a test.
func (p *place) tryClaim(nowMicros int64, key byte, cost int64, operation policy.Key) (policy.Verdict, error) {
	generation, err := p.store.Generation(p.Context())
	if err != nil {
		return policy.Verdict{}, err
	}
	claims := policy.Claims{Generation: generation, NowMicros: nowMicros, RetentionMicros: second, Claims: []policy.Claim{{
		Operation: operation,
		Checks:    []policy.Check{{Policy: p.policy, Key: policy.Key{key}, Cost: cost, Priced: true}},
	}}}
	var verdicts policy.Verdicts
	if err := p.store.DecideClaims(p.Context(), &claims, &verdicts); err != nil {
		return policy.Verdict{}, err
	}
	return verdicts.Verdicts[0], nil
}

// settle replaces an operation's cost and says whether its charge was changed.
func (p *place) settle(nowMicros int64, operation policy.Key, actual int64) (status policy.SettleStatus, applied bool) {
	p.Helper()
	settled, err := p.store.Settle(p.Context(), policy.Settlement{Operation: operation, ActualCost: actual}, nowMicros)
	if err != nil {
		p.Fatal(err)
	}
	return settled.Status, len(settled.Parts) == 1 && settled.Parts[0].Applied
}

// expectClaim expects a claim to be allowed or not, with so much left.
func (p *place) expectClaim(nowMicros int64, key byte, cost int64, allowed bool, remaining int64) {
	p.Helper()
	if got := p.claim(nowMicros, key, cost, policy.Key{}); got.Allowed != allowed || got.Parts[0].Remaining != remaining {
		p.Errorf("key %d: %+v, want allowed %t with %d remaining", key, got, allowed, remaining)
	}
}

func TestLoseWindows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		algorithm policy.Algorithm
		strict    bool
		free      int64 // seconds: when all of the limit is free after a loss at 100 s
	}{
		"fixed":   {policy.FixedWindow, false, 120},
		"counter": {policy.SlidingWindowCounter, false, 180},
		"strict":  {policy.SlidingWindowCounter, true, 161},
		"log":     {policy.SlidingWindowLog, false, 160},
	} {
		spec := limited(c.algorithm, 10)
		spec.Limit.Strict = c.strict
		p := newPlace(t, plenty, spec)
		p.expectClaim(100*second, 1, 7, true, 3)
		p.lose(100 * second)
		p.expectClaim(100*second, 1, 10, true, 0) // idle: nothing was ever spent

		spec.AfterLoss = policy.LossEmpty
		p = newPlace(t, plenty, spec)
		p.expectClaim(100*second, 1, 7, true, 3)
		p.lose(100 * second)
		for _, key := range []byte{1, 2} {
			got := p.claim(100*second, key, 10, policy.Key{})
			if got.Allowed || got.Parts[0].Remaining != 0 || got.Parts[0].RetryAfterMicros != (c.free-100)*second {
				t.Errorf("%s, key %d: %+v, want to wait until %d s", name, key, got, c.free)
			}
		}
		raised := spec
		raised.Limit.Capacity = 15
		p.policy = p.install(101*second, 1, raised)
		p.expectClaim(101*second, 2, 5, true, 0) // all that was spent of the old limit stays spent
		lowered := spec
		lowered.Limit.Capacity = 4
		p.policy = p.install(102*second, 2, lowered)
		p.expectClaim(102*second, 3, 1, false, 0)
		p.expectClaim(c.free*second, 3, 4, true, 0)
	}
}

func TestLoseSparesSlotsAndOperations(t *testing.T) {
	t.Parallel()
	spec := limited(policy.Concurrency, 3)
	spec.AfterLoss = policy.LossEmpty
	p := newPlace(t, plenty, spec)
	first := p.claim(0, 1, 2, policy.Key{1})
	p.lose(second)
	if got := p.claim(second, 1, 2, policy.Key{1}); got.Status != policy.ClaimReplayed || got.Parts[0].Slot != first.Parts[0].Slot {
		t.Errorf("%+v, at first %+v", got, first)
	}
	p.expectClaim(second, 1, 2, false, 1)
}

func TestClaimsRefuseStrangers(t *testing.T) {
	t.Parallel()
	p := newPlace(t, plenty, limited(policy.FixedWindow, 10))
	claims := policy.Claims{Generation: 1, Claims: []policy.Claim{
		{Checks: []policy.Check{{Policy: p.policy, Cost: 1}}},
		{Checks: []policy.Check{{Policy: &policy.Installed{Number: 2}, Cost: 1}}},
	}}
	var verdicts policy.Verdicts
	if err := p.store.DecideClaims(t.Context(), &claims, &verdicts); err == nil {
		t.Errorf("%+v, want an error", verdicts)
	}
	p.expectClaim(0, 0, 10, true, 0) // nothing was charged
	var answers policy.Answers
	batch := policy.Batch{Generation: 1, Asks: []policy.Ask{{Policy: 1, Count: 1, Cost: 1}}}
	if err := p.store.Decide(t.Context(), &batch, &answers); err == nil {
		t.Errorf("a window was asked as a token bucket: %+v", answers)
	}
}

func TestConcurrentClaims(t *testing.T) {
	t.Parallel()
	p := newPlace(t, plenty, limited(policy.Concurrency, 10))
	var acquired, repeated atomic.Int32
	var callers sync.WaitGroup
	for caller := range 50 {
		callers.Go(func() {
			operation := policy.Key{}
			if caller < 20 {
				operation = policy.Key{1} // all of them the same
			}
			verdict, err := p.tryClaim(0, 1, 1, operation)
			switch {
			case err != nil:
				t.Error(err)
			case verdict.Status == policy.ClaimReplayed:
				repeated.Add(1)
			case verdict.Allowed:
				acquired.Add(1)
			}
		})
	}
	callers.Wait()
	if acquired.Load() != 10 || repeated.Load() != 19 {
		t.Errorf("%d slots acquired, want 10; %d replays, want 19", acquired.Load(), repeated.Load())
	}
}
