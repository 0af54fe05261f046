package storetest

import (
	"math/rand/v2"

	"github.com/rationhq/ration/policy"
)

// limitChecks are the guarantees of every algorithm but the token bucket,
// which has more of its own.
func limitChecks() []check {
	all := []check{
		{"a clock that is behind moves no window back", windowClockBehind},
		{"a clock that is behind makes no entry before the newest", logClockBehind},
		{"a refused cost above the limit is told never", costAboveLimit},
		{"counts are kept through a change of the limit", countsAreKept},
		{"a passed window, an empty log and a key without slots are cleaned, nothing else", cleaningCounts},
	}
	for _, l := range limits {
		all = append(all,
			check{l.name + ": advice is exact, remaining is bounded, and never more than the limit", func(s *scene) { limitHolds(s, l) }},
			check{l.name + ": denials leave nothing", func(s *scene) { denialsLeaveNothing(s, l) }},
		)
	}
	return all
}

// limitKind is an algorithm, tried with limits in windows that segments and
// seconds do not divide.
type limitKind struct {
	name  string // a policy's id too
	limit func(limit int64, seconds string) string

	// counts says whether a charge made before counts against the limit at an
	// instant, as the algorithm promises its user.
	counts func(madeAt, at, window int64) bool

	// atMost is how much of what counts there may be.
	atMost func(limit int64) int64
}

var limits = []limitKind{
	{"fixed-window", fixedWindow, inAlignedWindow, exactly},
	{"sliding-counter", slidingCounter, inTrailingWindow, func(limit int64) int64 { return 2*limit - 1 }},
	{"sliding-counter-in-a-window", slidingCounter, inAlignedWindow, exactly},
	{"strict-sliding-counter", strictCounter, inTrailingWindow, exactly},
	{"sliding-log", slidingLog, inTrailingWindow, exactly},
	{"concurrency", concurrency, inTrailingWindow, exactly},
}

func fixedWindow(limit int64, seconds string) string {
	return window(policy.FixedWindow, false, limit, seconds)
}

func slidingCounter(limit int64, seconds string) string {
	return window(policy.SlidingWindowCounter, false, limit, seconds)
}

func strictCounter(limit int64, seconds string) string {
	return window(policy.SlidingWindowCounter, true, limit, seconds)
}

func slidingLog(limit int64, seconds string) string {
	return window(policy.SlidingWindowLog, false, limit, seconds)
}

func inAlignedWindow(madeAt, at, window int64) bool {
	return (epochMicros+madeAt)/window == (epochMicros+at)/window
}

func inTrailingWindow(madeAt, at, window int64) bool { return madeAt > at-window }

func exactly(limit int64) int64 { return limit }

// limitHolds claims at random instants. After a denial the same cost is asked
// for a microsecond before the advised instant, at it, and claimed there now
// and then.
func limitHolds(s *scene, l limitKind) {
	const seed, limit, claims, windowMicros = 21, 7, 120, 2_999_999
	s.put(0, "p", l.limit(limit, seconds(windowMicros)))
	random := rand.New(rand.NewPCG(seed, 0))
	type charge struct{ at, cost int64 }
	var charges []charge
	denied, at := 0, int64(0)
	for range claims {
		at += random.Int64N(windowMicros / 4)
		cost := 1 + random.Int64N(limit)
		got := s.claim(at, s.on("p", "key", cost))
		part := got.Parts[0]
		if !got.Allowed {
			denied++
			advised := at + part.RetryAfterMicros
			early := s.peekAt(advised-1, s.on("p", "key", cost))
			if early.Allowed || early.Parts[0].RetryAfterMicros != 1 {
				s.Fatalf("seed %d, cost %d at %d µs, a microsecond early: %+v", seed, cost, advised-1, early)
			}
			if then := s.peekAt(advised, s.on("p", "key", cost)); !then.Allowed || then.Parts[0].RetryAfterMicros != 0 {
				s.Fatalf("seed %d, cost %d at the advised instant %d µs: %+v", seed, cost, advised, then)
			}
			if random.IntN(2) > 0 {
				continue
			}
			at = advised
			if got = s.claim(at, s.on("p", "key", cost)); !got.Allowed {
				s.Fatalf("seed %d, cost %d claimed at the advised instant %d µs: %+v", seed, cost, advised, got)
			}
			part = got.Parts[0]
		}
		if part.Remaining < 0 || part.Remaining > limit-cost || part.ResetAfterMicros <= 0 || part.RetryAfterMicros != 0 {
			s.Fatalf("seed %d, cost %d at %d µs: %+v", seed, cost, at, part)
		}
		charges = append(charges, charge{at, cost})
		sum := int64(0)
		for _, made := range charges {
			if l.counts(made.at, at, windowMicros) {
				sum += made.cost
			}
		}
		if sum > l.atMost(limit) {
			s.Fatalf("seed %d: %d count at %d µs, at most %d", seed, sum, at, l.atMost(limit))
		}
	}
	if denied < claims/10 || len(charges) < claims/10 {
		s.Errorf("seed %d: %d denied, %d allowed, the limit was not tried", seed, denied, len(charges))
	}
}

// denialsLeaveNothing holds a key that is denied a hundred times against one
// that is left alone.
func denialsLeaveNothing(s *scene, l limitKind) {
	s.put(0, "p", l.limit(10, "60"))
	for _, key := range []string{"denied", "alone"} {
		s.claim(90*second, s.on("p", key, 6))
		s.claim(100*second, s.on("p", key, 2))
	}
	for i := range int64(100) {
		at := 100*second + i*50*millisecond
		if got := s.claim(at, s.on("p", "denied", 5)); got.Allowed {
			s.Fatalf("5 of the 2 that are left: %+v", got)
		}
	}
	for _, at := range []int64{105, 119, 120, 121, 150, 161, 179, 180, 181, 240} {
		for _, cost := range []int64{1, 5} {
			denied := s.peekAt(at*second, s.on("p", "denied", cost)).Parts[0]
			if alone := s.peekAt(at*second, s.on("p", "alone", cost)).Parts[0]; denied != alone {
				s.Errorf("cost %d at %d s: after denials %+v, without %+v", cost, at, denied, alone)
			}
		}
	}
}

func windowClockBehind(s *scene) {
	s.put(0, "fixed", fixedWindow(10, "60"))
	s.passes(130*second, "fixed", "key", 4, 6)           // in the window from 120 s
	s.passes(30*second, "fixed", "key", 5, 1)            // and this one too
	s.waits(30*second, "fixed", "key", 2, 1, 150*second) // until 180 s
	s.passes(180*second, "fixed", "key", 10, 0)

	s.put(0, "counter", slidingCounter(10, "60"))
	s.passes(130*second, "counter", "key", 4, 6)
	s.passes(30*second, "counter", "key", 6, 0)
	s.waits(30*second, "counter", "key", 1, 0, 156*second) // until a tenth of the next window has passed
	s.shows(30*second, "counter", "key", 0, 210*second)
	s.shows(186*second, "counter", "key", 1, 54*second)
}

func logClockBehind(s *scene) {
	s.put(0, "log", slidingLog(10, "60"))
	s.passes(130*second, "log", "key", 4, 6)
	s.passes(30*second, "log", "key", 6, 0) // made at 130 s
	s.waits(30*second, "log", "key", 1, 0, 160*second)
	s.waits(190*second-1, "log", "key", 10, 0, 1)
	s.passes(190*second, "log", "key", 10, 0)

	s.put(0, "strict", strictCounter(10, "60"))
	s.passes(130*second, "strict", "key", 4, 6) // counts as made at 131 s, the end of its second
	s.passes(30*second, "strict", "key", 6, 0)
	s.waits(30*second, "strict", "key", 1, 0, 161*second)
	s.passes(191*second, "strict", "key", 10, 0)

	s.put(0, "slots", concurrency(10, "60"))
	s.passes(130*second, "slots", "key", 4, 6)
	s.passes(30*second, "slots", "key", 6, 0) // until 90 s: a slot's time is the holder's
	s.waits(30*second, "slots", "key", 1, 0, 60*second)
	s.passes(90*second, "slots", "key", 6, 0)
	s.waits(90*second, "slots", "key", 7, 0, 100*second)
}

// costAboveLimit: 4 out of 3 was told to wait a moment (bucket4j#220).
func costAboveLimit(s *scene) {
	for _, l := range limits {
		s.put(0, l.name, l.limit(3, "60"))
		for _, cost := range []int64{4, policy.CostMax} {
			s.waits(0, l.name, "key", cost, 3, policy.Never)
		}
		if got := s.peekAt(0, s.on(l.name, "key", 4)); got.Allowed || got.Parts[0].RetryAfterMicros != policy.Never {
			s.Errorf("%s, a peek above the limit: %+v", l.name, got)
		}
		s.passes(0, l.name, "key", 3, 0)
		s.waits(0, l.name, "key", 4, 0, policy.Never)
	}
}

func countsAreKept(s *scene) {
	for _, l := range limits {
		s.put(0, l.name, l.limit(10, "60"))
		s.passes(second, l.name, "key", 6, 4)
		s.put(2*second, l.name, l.limit(20, "60"))
		s.passes(2*second, l.name, "key", 1, 13)
		s.put(3*second, l.name, l.limit(4, "60"))
		if got := s.peekAt(3*second, s.on(l.name, "key", 1)).Parts[0]; got.Allowed || got.Remaining != 0 || got.RetryAfterMicros <= 0 {
			s.Errorf("%s: 7 used of a limit lowered to 4: %+v", l.name, got)
		}
		s.passes(3*second, l.name, "absent", 4, 0)
	}
	s.put(4*second, "concurrency", concurrency(8, "10")) // slots that are live keep their 60 s
	s.passes(4*second, "concurrency", "key", 1, 0)
	s.waits(4*second, "concurrency", "key", 2, 0, 57*second)
	s.shows(14*second, "concurrency", "key", 1, 48*second)
}

func cleaningCounts(s *scene) {
	s.put(900*second, "ahead", slidingLog(10, "60")) // the clock was set back since
	s.passes(0, "ahead", "key", 6, 4)
	if deleted := s.clean(60 * second); deleted != 1 {
		s.Errorf("%d deleted, want the one log of which nothing counts", deleted)
	}
	for _, l := range limits {
		s.put(0, l.name, l.limit(10, "60"))
		s.passes(70*second, l.name, "key", 6, 4)
	}
	s.clean(119 * second)
	for _, l := range limits {
		s.left(119*second, l.name, "key", 4)
	}
	if s.clean(240*second) == 0 {
		s.Errorf("keys of which nothing counts stayed")
	}
	if deleted := s.clean(240 * second); deleted != 0 {
		s.Errorf("%d deleted where nothing was left", deleted)
	}
	for _, l := range limits {
		s.shows(240*second, l.name, "key", 10, 0)
		s.passes(240*second, l.name, "key", 10, 0)
	}
}
