package memstore_test

import (
	"testing"

	"github.com/rationhq/ration/policy"
)

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
