package memstore_test

import (
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
	generation, err := p.store.Generation(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	claims := policy.Claims{Generation: generation, NowMicros: nowMicros, RetentionMicros: second, Claims: []policy.Claim{{
		Operation: operation,
		Checks:    []policy.Check{{Policy: p.policy, Key: policy.Key{key}, Cost: cost, Priced: true}},
	}}}
	var verdicts policy.Verdicts
	if err := p.store.DecideClaims(p.Context(), &claims, &verdicts); err != nil {
		p.Fatal(err)
	}
	return verdicts.Verdicts[0]
}

// settle settles an operation and says whether its charge was changed.
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

func TestFullStoreSharesOneWindow(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []policy.Algorithm{policy.FixedWindow, policy.SlidingWindowCounter, policy.SlidingWindowLog} {
		p := newPlace(t, 1, limited(algorithm, 10))
		p.expectClaim(0, 1, 4, true, 6)
		p.expectClaim(0, 2, 4, true, 6) // full: shared from here on
		p.expectClaim(0, 3, 4, true, 2)
		p.expectClaim(0, 4, 4, false, 2)
		p.expectClaim(0, 1, 6, true, 0) // who was there keeps his own
		if deleted, _ := p.store.Clean(t.Context(), 120*second); deleted != 1 {
			t.Errorf("%s: %d deleted, want 1", algorithm, deleted)
		}
		p.expectClaim(120*second, 3, 10, true, 0)
	}
}

func TestFullStoreHandsOutNoSlot(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 2, limited(policy.Concurrency, 5))
	first := p.claim(0, 1, 1, policy.Key{})
	p.expectClaim(0, 2, 1, true, 4)
	if got := p.claim(0, 1, 1, policy.Key{}); got.Allowed || got.Parts[0].RetryAfterMicros != 60*second {
		t.Errorf("a third slot: %+v, want to wait until slots have ended", got)
	}
	if released, _ := p.store.ReleaseSlot(t.Context(), first.Parts[0].Slot.ID, second); !released {
		t.Error("a live slot was not released")
	}
	p.expectClaim(second, 3, 1, true, 4) // a key too many, but there is room for its slot
	if deleted, _ := p.store.Clean(t.Context(), 61*second); deleted == 0 {
		t.Error("the expired slots stayed")
	}
	p.expectClaim(61*second, 1, 5, true, 0)
}

func TestFullStoreForgetsOperations(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 1, limited(policy.FixedWindow, 10))
	known, unknown := policy.Key{1}, policy.Key{2}
	p.claim(0, 1, 2, known)
	p.claim(0, 1, 2, unknown)
	if got := p.claim(0, 1, 2, known); got.Status != policy.ClaimReplayed {
		t.Errorf("the operation that was remembered: %+v", got)
	}
	if got := p.claim(0, 1, 2, unknown); got.Status != policy.ClaimDecided || got.Parts[0].Remaining != 4 {
		t.Errorf("the other: %+v, want it charged anew", got)
	}
	if status, _ := p.settle(0, unknown, 0); status != policy.SettleUnknown {
		t.Errorf("settled what is not remembered: %d", status)
	}
}

// What was charged to a key of its own is not given back to those who share.
func TestFullStoreSettlesWhereItCharged(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 2, perSecond(10))
	p.claim(0, 1, 5, policy.Key{1})
	p.claim(0, 9, 10, policy.Key{})
	p.policy = p.install(second, 1, perSecond(2)) // carried over, key 1 is as full as a new one
	if deleted, _ := p.store.Clean(t.Context(), second-1); deleted != 1 {
		t.Fatalf("%d deleted, want the key and not yet the outcome", deleted)
	}
	p.claim(second, 2, 2, policy.Key{})
	p.claim(second, 3, 2, policy.Key{2}) // shared
	if _, applied := p.settle(second, policy.Key{1}, 0); applied {
		t.Error("who shares was given back what key 1 was charged")
	}
	p.expectClaim(second, 3, 1, false, 0)
	if _, applied := p.settle(second, policy.Key{2}, 1); !applied {
		t.Error("who shares was not given back his own")
	}
	p.expectClaim(second, 4, 1, true, 0)
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
		p.store.Lose(100 * second)
		p.expectClaim(100*second, 1, 10, true, 0) // idle: nothing was ever spent

		spec.AfterLoss = policy.LossEmpty
		p = newPlace(t, plenty, spec)
		p.expectClaim(100*second, 1, 7, true, 3)
		p.store.Lose(100 * second)
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
	p.store.Lose(second)
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
