package pgstore_test

import (
	"testing"

	"github.com/rationhq/ration/policy"
)

// A slot whose holder is gone comes back when its time is over, and not before.
func TestSlotsOfADeadHolderComeBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	of := b.install("cap", 0, shape{capacity: 3, seconds: "10", algorithm: policy.Concurrency}, 0)
	for range 3 {
		if verdict := b.claim(session, 0, claim(check(of, 1, 1)))[0]; !verdict.Allowed {
			t.Fatalf("%+v", verdict)
		}
	}
	session.Close()
	session = b.session()
	if part := b.claim(session, 9_900_000, claim(check(of, 1, 1)))[0].Parts[0]; part.Allowed || part.RetryAfterMicros != 100_000 {
		t.Errorf("at 9.9 s: %+v", part)
	}
	if verdict := b.claim(session, 10_100_000, claim(check(of, 1, 1)))[0]; !verdict.Allowed || verdict.Parts[0].Remaining != 2 {
		t.Errorf("at 10.1 s: %+v", verdict)
	}
}

// A reply that was lost costs no second slot, and a renewal that comes late
// takes none.
func TestSlotsAreRenewedOnlyWhileLive(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	of := b.install("cap", 0, shape{capacity: 1, seconds: "2", algorithm: policy.Concurrency}, 0)
	op := operating("x", check(of, 1, 1))
	slot := b.claim(session, 0, op)[0].Parts[0].Slot
	if again := b.claim(session, second, op)[0]; again.Status != policy.ClaimReplayed || again.Parts[0].Slot != slot || slot == (policy.Slot{}) {
		t.Errorf("the retry got %+v, the first %+v", again, slot)
	}
	renew := func(at int64, id policy.SlotID, wantExpiry int64) {
		t.Helper()
		expiresAt, renewed, err := b.store.RenewSlotAt(t.Context(), id, epochMicros+at)
		if err != nil || renewed != (wantExpiry > 0) || renewed && expiresAt != epochMicros+wantExpiry {
			t.Errorf("renewed at %d µs: until %d, %t, %v", at, expiresAt-epochMicros, renewed, err)
		}
	}
	release := func(at int64, id policy.SlotID, want bool) {
		t.Helper()
		if released, err := b.store.ReleaseSlotAt(t.Context(), id, epochMicros+at); err != nil || released != want {
			t.Errorf("released at %d µs: %t, %v", at, released, err)
		}
	}
	renew(1_500_000, slot.ID, 3_500_000)
	if verdict := b.claim(session, 3_400_000, claim(check(of, 1, 1)))[0]; verdict.Allowed {
		t.Errorf("while the renewed slot is live: %+v", verdict)
	}
	next := b.claim(session, 3_600_000, claim(check(of, 1, 1)))[0]
	if !next.Allowed {
		t.Fatalf("at 3.6 s: %+v", next)
	}
	renew(3_700_000, slot.ID, 0)
	release(3_700_000, slot.ID, false)
	renew(3_700_000, policy.SlotID{1}, 0)
	release(3_700_000, policy.SlotID{1}, false)
	if part := b.peek(session, 3_700_000, of, 1); part.Remaining != 0 {
		t.Errorf("%+v, want one slot to be held", part)
	}
	release(3_700_000, next.Parts[0].Slot.ID, true)
	release(3_700_000, next.Parts[0].Slot.ID, false)
	if part := b.peek(session, 3_700_000, of, 1); part.Remaining != 1 || part.ResetAfterMicros != 0 {
		t.Errorf("%+v, want none to be held", part)
	}
}
