package storetest

import (
	"reflect"

	"github.com/rationhq/ration/policy"
)

// settleChecks are the guarantees of settlements.
func settleChecks() []check {
	return []check{
		{"a bucket is credited up to its capacity and charged into debt", settleBucket},
		{"a window is settled while it counts the charge", settleWindow},
		{"a log is settled while it holds the entry", settleLog},
		{"a charge is settled to the last instant at which it counts", settleInTime},
		{"an extra charge is cut at twice the limit", settleIsCut},
		{"slots are released, not settled", settleSlots},
		{"only the request's own cost is settled, once, and only if it was charged", settleOnce},
	}
}

// operates claims under an operation id and expects to be allowed.
func (s *scene) operates(at int64, id string, checks ...policy.Check) {
	s.Helper()
	if got := s.verdict(at, policy.ClaimDecided, operation(id, 0, checks...)); !got.Allowed {
		s.Fatalf("operation %s: %+v", id, got)
	}
}

// settle settles an operation and expects a status.
func (s *scene) settle(at int64, id string, actual int64, want policy.SettleStatus) policy.Settled {
	s.Helper()
	settlement := policy.Settlement{Operation: keyOf("operation", id), ActualCost: actual}
	got, err := s.store.Settle(s.Context(), settlement, epochMicros+at)
	if err != nil {
		s.Fatalf("settle %s at %d µs: %v", id, at, err)
	}
	if got.Status != want {
		s.Errorf("settle %s to %d at %d µs: %+v, want status %d", id, actual, at, got, want)
	}
	return got
}

// settles replaces the charge of one policy and expects what became of it.
func (s *scene) settles(at int64, id string, actual int64, applied, clamped bool) {
	s.Helper()
	got := s.settle(at, id, actual, policy.SettleDone)
	if got.AtMicros != epochMicros+at || len(got.Parts) != 1 || got.Parts[0].Actual != actual ||
		got.Parts[0].Applied != applied || got.Parts[0].Clamped != clamped {
		s.Errorf("settle %s to %d at %d µs: %+v, want applied %t, clamped %t", id, actual, at, got, applied, clamped)
	}
}

func settleBucket(s *scene) {
	s.put(0, "p", bucketOf(10, "1", "1"))
	s.operates(0, "less", s.on("p", "key", 6))
	s.operates(0, "none", s.on("p", "key", 3)) // leaves 1
	s.settles(0, "less", 4, true, false)
	s.shows(0, "p", "key", 3, 7*second)
	s.settles(5*second, "none", 0, true, false) // 8 and 3 are 10
	s.shows(5*second, "p", "key", 10, 0)
	s.operates(5*second, "more", s.on("p", "key", 4))
	s.settles(6*second, "more", 14, true, false) // 7 less 10
	s.shows(6*second, "p", "key", 0, 13*second)
	s.waits(6*second, "p", "key", 1, 0, 4*second)
	s.operates(10*second, "huge", s.on("p", "key", 1))
	s.settles(10*second, "huge", policy.CostMax, true, true)
	s.waits(10*second, "p", "key", 1, 0, 11*second)
	s.operates(30*second, "forgotten", s.on("p", "other", 1))
	s.clean(40 * second)
	s.settles(40*second, "forgotten", 5, true, false) // an absent bucket is a full one
	s.shows(40*second, "p", "other", 6, 4*second)
}

func settleWindow(s *scene) {
	s.put(0, "fixed", fixedWindow(10, "60"))
	s.put(0, "counter", slidingCounter(10, "60"))
	for _, id := range []string{"fixed", "counter"} {
		s.operates(0, id+"a", s.on(id, "key", 6))
		s.operates(0, id+"b", s.on(id, "key", 2))
		s.settles(second, id+"a", 1, true, false)
		s.left(second, id, "key", 7)
		s.settles(second, id+"b", 5, true, false)
		s.left(second, id, "key", 4)
	}
	for _, id := range []string{"fixed", "counter"} {
		s.operates(61*second, "late-"+id, s.on(id, "late", 6))
		s.claim(121*second, s.on(id, "late", 1))
	}
	s.settles(122*second, "late-fixed", 0, false, false) // its window is gone
	s.settles(122*second, "late-counter", 0, true, false)
	s.shows(122*second, "counter", "late", 9, 118*second)
	s.operates(122*second, "next", s.on("counter", "late", 6))
	s.passes(241*second, "counter", "late", 1, 9)
	s.settles(241*second, "next", 0, false, false) // two windows later it counts no more
	s.shows(241*second, "counter", "late", 9, 119*second)
}

func settleLog(s *scene) {
	s.put(0, "log", slidingLog(10, "60"))
	s.put(0, "strict", strictCounter(10, "60"))
	for _, id := range []string{"log", "strict"} {
		s.operates(0, id+"a", s.on(id, "key", 4))
		s.operates(0, id+"b", s.on(id, "key", 2)) // of the same entry
		s.operates(30*second, id+"c", s.on(id, "key", 3))
		s.settles(31*second, id+"a", 0, true, false)
		s.settles(31*second, id+"c", 0, true, false)
		s.left(31*second, id, "key", 8)
		s.settles(31*second, id+"b", 1, true, false)
		s.passes(70*second, id, "key", 10, 0)
		s.operates(140*second, id+"d", s.on(id, "key", 5))
		s.passes(210*second, id, "key", 1, 9)
		s.settles(210*second, id+"d", 9, false, false) // the entry is gone
		s.left(210*second, id, "key", 9)
	}
}

func settleInTime(s *scene) {
	for _, c := range []struct {
		id, limit string
		ends      int64 // when a charge of 10 s counts no more
	}{
		{"fixed", fixedWindow(10, "60"), 60 * second},
		{"counter", slidingCounter(10, "60"), 120 * second},
		{"log", slidingLog(10, "60"), 70 * second},
		{"strict", strictCounter(10, "60"), 71 * second},
	} {
		s.put(0, c.id, c.limit)
		for _, key := range []string{"in time", "too late", "cleaned"} {
			s.operates(10*second, c.id+key, s.on(c.id, key, 4))
		}
		s.settles(c.ends-1, c.id+"in time", 1, true, false)
		s.left(c.ends-1, c.id, "in time", 9)
		s.settles(c.ends, c.id+"too late", 7, false, false) // though nothing has been charged since
		s.clean(c.ends)
		s.settles(c.ends, c.id+"cleaned", 7, false, false)
		for _, key := range []string{"in time", "too late", "cleaned"} {
			s.shows(c.ends, c.id, key, 10, 0)
		}
	}
}

func settleIsCut(s *scene) {
	for _, l := range limits[:5] { // all but concurrency
		s.put(0, l.name, l.limit(10, "60"))
		s.passes(0, l.name, "key", 3, 7)
		s.operates(0, l.name, s.on(l.name, "key", 2))
		s.settles(second, l.name, policy.CostMax, true, true) // 20 are used
		s.put(2*second, l.name, l.limit(25, "60"))
		s.left(2*second, l.name, "key", 5)
	}
	s.put(0, "log", slidingLog(10, "60")) // what has left it makes no difference
	s.passes(0, "log", "key", 8, 2)
	s.operates(30*second, "log", s.on("log", "key", 2))
	s.settles(60*second, "log", policy.CostMax, true, true)
	s.put(60*second, "log", slidingLog(25, "60"))
	s.left(60*second, "log", "key", 5)
}

func settleSlots(s *scene) {
	s.put(0, "rate", fixedWindow(10, "60"))
	s.put(0, "slots", concurrency(3, "60"))
	s.operates(0, "slots only", s.on("slots", "key", 1))
	s.settle(0, "slots only", 0, policy.SettleSlots)
	s.operates(0, "mixed", s.on("rate", "key", 2), s.on("slots", "key", 2))
	got := s.settle(second, "mixed", 5, policy.SettleDone)
	want := []policy.SettledPart{
		{Policy: "rate", Version: 1, Charged: 2, Actual: 5, Applied: true},
		{Policy: "slots", Version: 1, Charged: 2, Actual: 2},
	}
	if !reflect.DeepEqual(got.Parts, want) {
		s.Errorf("%+v, want %+v", got.Parts, want)
	}
	s.shows(second, "rate", "key", 5, 59*second)
	s.shows(second, "slots", "key", 0, 59*second)
}

func settleOnce(s *scene) {
	s.put(0, "a", fixedWindow(10, "60"))
	s.put(0, "b", fixedWindow(10, "60"))
	s.putMode(0, "c", policy.Shadow, fixedWindow(1, "60"))
	own := s.on("b", "key", 3)
	own.Priced = false
	s.operates(0, "op", s.on("a", "key", 2), own, s.on("c", "key", 2))
	s.put(second, "a", fixedWindow(20, "60"))
	first := s.settle(2*second, "op", 5, policy.SettleDone)
	want := []policy.SettledPart{
		{Policy: "a", Version: 1, Charged: 2, Actual: 5, Applied: true},
		{Policy: "b", Version: 1, Charged: 3, Actual: 3},
	}
	if !reflect.DeepEqual(first.Parts, want) {
		s.Errorf("%+v, want %+v", first.Parts, want)
	}
	again := s.settle(70*second, "op", 5, policy.SettleReplayed)
	if again.AtMicros != first.AtMicros || !reflect.DeepEqual(again.Parts, first.Parts) {
		s.Errorf("settled again: %+v, at first %+v", again, first)
	}
	s.settle(2*second, "op", 0, policy.SettleConflict)
	s.settle(2*second, "op", 6, policy.SettleConflict)
	s.shows(2*second, "a", "key", 15, 58*second)
	s.shows(2*second, "b", "key", 7, 58*second)
	s.shows(2*second, "c", "key", 1, 0)

	s.verdict(2*second, policy.ClaimDecided, operation("denied", 0, s.on("a", "key", 16)))
	s.settle(2*second, "denied", 0, policy.SettleUnknown)
	s.settle(2*second, "never seen", 0, policy.SettleUnknown)
}
