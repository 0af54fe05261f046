package storetest

import (
	"github.com/rationhq/ration/policy"
)

// slotChecks are the guarantees of slots.
func slotChecks() []check {
	return []check{
		{"a slot ends by release, once", slotReleased},
		{"a slot expires, and is renewed only while it lives", slotRenewed},
		{"a replay gives the same slot", slotReplayed},
		{"a slot outlives changes of its policy", slotOutlivesChanges},
	}
}

// acquires claims a slot of a policy and expects to get it.
func (s *scene) acquires(at int64, id, key string, cost int64) policy.Slot {
	s.Helper()
	got := s.claim(at, s.on(id, key, cost))
	if !got.Allowed || got.Parts[0].Slot.ID == (policy.SlotID{}) {
		s.Fatalf("at %d µs: %+v, want a slot", at, got)
	}
	return got.Parts[0].Slot
}

// releases ends a slot and expects to be told whether it was live.
func (s *scene) releases(at int64, id policy.SlotID, want bool) {
	s.Helper()
	if got, err := s.store.ReleaseSlot(s.Context(), id, epochMicros+at); err != nil || got != want {
		s.Errorf("release at %d µs: %t, %v, want %t", at, got, err, want)
	}
}

// renews asks for a slot to live on and expects when it expires now, 0 when it is not live.
func (s *scene) renews(at int64, id policy.SlotID, expires int64) {
	s.Helper()
	got, renewed, err := s.store.RenewSlot(s.Context(), id, epochMicros+at)
	switch {
	case err != nil || renewed != (expires != 0):
		s.Errorf("renew at %d µs: %t, %v", at, renewed, err)
	case renewed && got != epochMicros+expires:
		s.Errorf("renewed at %d µs: it expires at %d µs, want %d", at, got-epochMicros, expires)
	}
}

func slotReleased(s *scene) {
	s.put(0, "p", concurrency(3, "60"))
	one, two := s.acquires(0, "p", "key", 1), s.acquires(0, "p", "key", 2)
	if one.ID == two.ID || one.ExpiresAtMicros != epochMicros+60*second {
		s.Errorf("%+v and %+v", one, two)
	}
	s.waits(second, "p", "key", 1, 0, 59*second)
	s.releases(second, policy.SlotID{1}, false)
	s.releases(second, two.ID, true)
	s.releases(second, two.ID, false)
	s.shows(second, "p", "key", 2, 59*second)
	s.renews(second, two.ID, 0)
	s.releases(60*second, one.ID, false) // it has expired
	s.shows(60*second, "p", "key", 3, 0)
}

func slotRenewed(s *scene) {
	s.put(0, "p", concurrency(2, "10"))
	slot := s.acquires(0, "p", "key", 2)
	s.renews(0, policy.SlotID{1}, 0)
	s.renews(4*second, slot.ID, 14*second)
	s.waits(10*second, "p", "key", 1, 0, 4*second)
	s.renews(14*second-1, slot.ID, 24*second-1)
	s.renews(24*second-1, slot.ID, 0)
	s.clean(30 * second)
	s.renews(20*second, slot.ID, 0)
	s.shows(20*second, "p", "key", 2, 0)
}

func slotReplayed(s *scene) {
	s.put(0, "p", concurrency(2, "10"))
	claim := operation("op", 0, s.on("p", "key", 1))
	first := s.verdict(0, policy.ClaimDecided, claim)
	s.replays(5*second, claim, first)
	s.shows(5*second, "p", "key", 1, 5*second)
	s.releases(5*second, first.Parts[0].Slot.ID, true)
	s.replays(6*second, claim, first) // as it was answered; it is not acquired again
	s.shows(6*second, "p", "key", 2, 0)
}

func slotOutlivesChanges(s *scene) {
	s.put(0, "p", concurrency(3, "10"))
	old := s.acquires(0, "p", "key", 3)
	s.put(second, "p", concurrency(1, "60"))
	s.waits(second, "p", "key", 1, 0, 9*second)
	s.renews(2*second, old.ID, 12*second) // by its own time
	s.put(3*second, "p", concurrency(4, "20"))
	slot := s.acquires(3*second, "p", "key", 1)
	if slot.ExpiresAtMicros != epochMicros+23*second {
		s.Errorf("a slot of 20 s from 3 s on: %+v", slot)
	}
	s.putMode(4*second, "p", policy.Shadow, concurrency(4, "20"))
	s.releases(4*second, old.ID, true)
	s.shows(4*second, "p", "key", 3, 19*second)
}
