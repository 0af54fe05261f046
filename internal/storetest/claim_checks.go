package storetest

import (
	"slices"

	"github.com/rationhq/ration/policy"
)

// claimChecks are the guarantees of a request that has to pass several
// policies, and of a call of several requests.
func claimChecks() []check {
	return []check{
		{"nothing is taken unless all policies allow", allOrNothing},
		{"a shadow policy is charged and never denies", shadowNeverDenies},
		{"the claims of a call are decided in their order", claimsInOrder},
		{"a peek at every algorithm takes nothing", peekAtAll},
		{"claims on another generation decide nothing", staleClaims},
		{"a token bucket is the same on both paths", bothPaths},
		{"a claim tells the version that decided, and what was charged", claimTells},
	}
}

// onEach installs one policy of every algorithm, of the same limit and nothing
// that comes back within a minute, and gives a check of each, ascending by id.
func (s *scene) onEach(limit, cost int64) []policy.Check {
	s.Helper()
	s.put(0, "a-bucket", bucketOf(limit, "1", "100000"))
	s.put(0, "b-fixed", fixedWindow(limit, "60"))
	s.put(0, "c-counter", slidingCounter(limit, "60"))
	s.put(0, "d-strict", strictCounter(limit, "60"))
	s.put(0, "e-log", slidingLog(limit, "60"))
	s.put(0, "f-slots", concurrency(limit, "60"))
	var checks []policy.Check
	for _, id := range []string{"a-bucket", "b-fixed", "c-counter", "d-strict", "e-log", "f-slots"} {
		checks = append(checks, s.on(id, "key", cost))
	}
	return checks
}

func allOrNothing(s *scene) {
	checks := s.onEach(10, 2)
	for _, exhausted := range checks {
		key := keyOf("other", exhausted.Policy.ID)
		alone := policy.Check{Policy: exhausted.Policy, Key: key, Cost: 9}
		s.claim(0, alone)
		mixed := slices.Clone(checks)
		for i := range mixed {
			if mixed[i].Policy == exhausted.Policy {
				mixed[i].Key = key
			}
		}
		got := s.claim(second, mixed...)
		for i, part := range got.Parts {
			fits := mixed[i].Policy != exhausted.Policy
			if part.Allowed != fits || fits && (part.Remaining != 10 || part.RetryAfterMicros != 0) ||
				!fits && (part.Remaining != 1 || part.RetryAfterMicros <= 0) || part.Slot != (policy.Slot{}) {
				s.Errorf("%s denies, part %d: %+v", exhausted.Policy.ID, i, part)
			}
		}
		if got.Allowed {
			s.Errorf("%s has 1 left of the 2: %+v", exhausted.Policy.ID, got)
		}
	}
	got := s.claim(2*second, checks...)
	for i, part := range got.Parts {
		if !part.Allowed || part.Remaining != 8 || part.RetryAfterMicros != 0 {
			s.Errorf("all allow, part %d: %+v, want 8 remaining", i, part)
		}
	}
	if !got.Allowed {
		s.Errorf("all allow: %+v", got)
	}
}

func shadowNeverDenies(s *scene) {
	s.putMode(0, "shadow", policy.Shadow, fixedWindow(3, "60"))
	s.put(0, "tight", fixedWindow(5, "60"))
	claim := func(wantAllowed, shadowAllows bool, shadowLeft, left int64) {
		s.Helper()
		got := s.claim(0, s.on("shadow", "key", 2), s.on("tight", "key", 2))
		shadow, tight := got.Parts[0], got.Parts[1]
		if got.Allowed != wantAllowed || shadow.Allowed != shadowAllows || shadow.Remaining != shadowLeft ||
			tight.Allowed != wantAllowed || tight.Remaining != left || !shadowAllows && shadow.RetryAfterMicros != 60*second {
			s.Errorf("%+v, want allowed %t, %d left in shadow, %d in force", got, wantAllowed, shadowLeft, left)
		}
	}
	claim(true, true, 1, 3)
	claim(true, false, 1, 1)  // the shadow policy has 1 of the 2, would have denied, and is not charged
	claim(false, false, 1, 1) // the other one denies
	s.putMode(second, "tight", policy.Shadow, fixedWindow(5, "60"))
	if got := s.claim(second, s.on("shadow", "key", 2), s.on("tight", "key", 2)); !got.Allowed {
		s.Errorf("only shadow policies: %+v", got)
	}
	s.putMode(2*second, "shadow", policy.Enforce, fixedWindow(3, "60"))
	s.waits(2*second, "shadow", "key", 2, 1, 58*second) // what it counted meanwhile is in force
}

func claimsInOrder(s *scene) {
	checks := s.onEach(5, 2)
	two := policy.Claim{Checks: checks}
	one := policy.Claim{Checks: slices.Clone(checks)}
	for i := range one.Checks {
		one.Checks[i].Cost = 1
	}
	ask := policy.Claim{Peek: true, Checks: one.Checks}
	verdicts := s.claims(0, two, ask, two, two, one, ask, one)
	for i, want := range []struct {
		allowed bool
		left    int64
	}{{true, 3}, {true, 3}, {true, 1}, {false, 1}, {true, 0}, {false, 0}, {false, 0}} {
		for _, part := range verdicts[i].Parts {
			if verdicts[i].Allowed != want.allowed || part.Allowed != want.allowed || part.Remaining != want.left {
				s.Errorf("claim %d of the call: %+v, want allowed %t with %d remaining", i+1, part, want.allowed, want.left)
			}
		}
	}
}

func peekAtAll(s *scene) {
	checks := s.onEach(5, 3)
	for range 5 {
		if got := s.peekAt(0, checks...); !got.Allowed || got.Parts[5].Slot != (policy.Slot{}) {
			s.Fatalf("a peek at what is unused: %+v", got)
		}
	}
	s.claim(0, checks...)
	got := s.peekAt(second, checks...)
	for i, part := range got.Parts {
		if got.Allowed || part.Allowed || part.Remaining != 2 || part.RetryAfterMicros <= 0 || part.Cost != 0 {
			s.Errorf("a peek at cost 3 of the 2 that are left, part %d: %+v", i, part)
		}
	}
}

func staleClaims(s *scene) {
	checks := s.onEach(5, 3)
	for _, off := range []int64{-1, 1} {
		call := policy.Claims{
			Generation: s.generation + off, NowMicros: epochMicros, RetentionMicros: retentionMicros,
			Claims: []policy.Claim{{Checks: checks}},
		}
		var verdicts policy.Verdicts
		if err := s.store.DecideClaims(s.Context(), &call, &verdicts); err != nil || !verdicts.Stale {
			s.Errorf("generation %d of %d: %+v, %v, want stale", call.Generation, s.generation, verdicts, err)
		}
	}
	for i, part := range s.peekAt(0, checks...).Parts {
		if part.Remaining != 5 {
			s.Errorf("after stale claims, part %d: %+v", i, part)
		}
	}
}

func bothPaths(s *scene) {
	s.install(0, 10, "1", "3")
	s.spend(0, "key", 4)
	s.passes(second, "scene", "key", 5, 1)
	s.deny(2*second, "key", 2, 1, second)
	s.waits(2*second, "scene", "key", 2, 1, second)
	s.waits(2*second, "scene", "key", 11, 1, policy.Never)
	s.passes(3*second, "scene", "key", 2, 0)
	s.holds(3*second, "key", 0)
	s.install(4*second, 20, "7", "2")
	s.left(5*second, "scene", "key", 3)
	s.allow(5*second, "key", 3, 0)
	s.shows(6*second, "scene", "absent", 17, s.peek(6*second, "absent").ResetAfterMicros)
}

func claimTells(s *scene) {
	s.put(0, "a", fixedWindow(5, "60"))
	s.put(0, "b", slidingLog(5, "60"))
	s.put(second, "b", slidingLog(6, "60"))
	got := s.claim(2*second, s.on("a", "key", 2), s.on("b", "key", 3))
	if got.AtMicros != epochMicros+2*second {
		s.Errorf("decided at %d", got.AtMicros)
	}
	for i, want := range []policy.Part{
		{Policy: s.policies["a"].Number, Version: 1, Allowed: true, Remaining: 3, ResetAfterMicros: 58 * second, Cost: 2},
		{Policy: s.policies["b"].Number, Version: 2, Allowed: true, Remaining: 3, ResetAfterMicros: 60 * second, Cost: 3},
	} {
		if got.Parts[i] != want {
			s.Errorf("%+v, want %+v", got.Parts[i], want)
		}
	}
}
