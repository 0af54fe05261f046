package storetest

import (
	"reflect"

	"github.com/rationhq/ration/policy"
)

// operationChecks are the guarantees of operation ids.
func operationChecks() []check {
	return []check{
		{"a repeat is answered as at first and charged once, whatever has changed", repeatIsReplayed},
		{"a denial is final for its operation id", denialIsReplayed},
		{"an operation id belongs to one request", idBelongsToOneRequest},
		{"an operation without checks is only looked up", lookUp},
		{"outcomes are kept for the retention and cleaned after it", retention},
	}
}

// operation is a claim under an operation id.
func operation(id string, stated int64, checks ...policy.Check) policy.Claim {
	return policy.Claim{
		Operation: keyOf("operation", id), Content: keyOf("content", id), Stated: stated, Checks: checks,
	}
}

// replays sends a claim again and expects the verdict it had.
func (s *scene) replays(at int64, claim policy.Claim, first policy.Verdict) {
	s.Helper()
	got := s.verdict(at, policy.ClaimReplayed, claim)
	first.Status = policy.ClaimReplayed
	if !reflect.DeepEqual(got, first) {
		s.Errorf("at %d µs: replayed %+v, at first %+v", at, got, first)
	}
}

func repeatIsReplayed(s *scene) {
	checks := s.onEach(5, 2)
	claim := operation("op", 2, checks...)
	first := s.verdict(0, policy.ClaimDecided, claim)
	if !first.Allowed {
		s.Fatalf("nothing was used: %+v", first)
	}
	s.replays(0, claim, first)
	s.replays(-100*second, claim, first)
	s.claim(second, checks...)
	s.replays(second, claim, first)
	for i := range claim.Checks {
		claim.Checks[i].Policy = s.put(2*second, checks[i].Policy.ID, s.onEachLimit(i))
	}
	s.replays(3*second, claim, first)
	for i, check := range claim.Checks {
		if i > 0 { // a raised bucket stays at 1
			s.left(3*second, check.Policy.ID, "key", 16)
		}
	}
}

// onEachLimit is the limit of onEach's i-th policy, raised to 20.
func (s *scene) onEachLimit(i int) string {
	return []string{
		bucketOf(20, "1", "100000"), fixedWindow(20, "60"), slidingCounter(20, "60"), strictCounter(20, "60"),
		slidingLog(20, "60"), concurrency(20, "60"),
	}[i]
}

func denialIsReplayed(s *scene) {
	s.put(0, "p", fixedWindow(5, "60"))
	claim := operation("op", 3, s.on("p", "key", 3))
	s.passes(0, "p", "key", 4, 1)
	first := s.verdict(second, policy.ClaimDecided, claim)
	if first.Allowed || first.Parts[0].RetryAfterMicros != 59*second {
		s.Errorf("3 of the 1 that is left: %+v", first)
	}
	s.replays(61*second, claim, first) // though it would be allowed now
	s.passes(61*second, "p", "key", 5, 0)
}

func idBelongsToOneRequest(s *scene) {
	s.put(0, "p", fixedWindow(100, "60"))
	s.put(0, "q", fixedWindow(100, "60"))
	ask := func(stated int64, costs ...int64) policy.Claim {
		claim := operation("op", stated)
		for i, cost := range costs {
			claim.Checks = append(claim.Checks, s.on([]string{"p", "q"}[i], "key", cost))
		}
		return claim
	}
	first := s.verdict(0, policy.ClaimDecided, ask(3, 3, 2))
	s.replays(0, ask(3, 3, 2), first)
	s.replays(0, ask(3, 5, 2), first) // other prices by now, the same stated cost
	s.replays(0, ask(0, 3, 2), first) // absent, and it is what was stated
	s.replays(0, ask(0, 1, 3), first) // whichever policy charges it
	s.verdict(0, policy.ClaimReused, ask(0, 2, 2))
	s.verdict(0, policy.ClaimReused, ask(2, 3, 2))
	s.verdict(0, policy.ClaimReused, ask(4, 4))
	other := ask(3, 3, 2)
	other.Content = keyOf("content", "other")
	s.verdict(0, policy.ClaimReused, other)
	s.shows(0, "p", "key", 97, 60*second)
	s.shows(0, "q", "key", 98, 60*second)

	unstated := operation("unstated", 0, s.on("p", "key", 3))
	first = s.verdict(0, policy.ClaimDecided, unstated)
	unstated.Stated = 3
	s.replays(0, unstated, first)
	unstated.Stated, unstated.Checks[0].Cost = 4, 4
	s.verdict(0, policy.ClaimReused, unstated)
}

func lookUp(s *scene) {
	s.put(0, "p", fixedWindow(100, "60"))
	s.verdict(0, policy.ClaimUnknown, operation("op", 0))
	first := s.verdict(0, policy.ClaimDecided, operation("op", 3, s.on("p", "key", 3)))
	s.replays(0, operation("op", 3), first)
	s.replays(0, operation("op", 0), first)
	s.verdict(0, policy.ClaimReused, operation("op", 4))
}

func retention(s *scene) {
	s.put(0, "p", fixedWindow(5, "86400"))
	claim := operation("op", 1, s.on("p", "key", 1))
	first := s.verdict(0, policy.ClaimDecided, claim)
	s.clean(retentionMicros - 1)
	s.replays(retentionMicros-1, claim, first)
	if s.clean(retentionMicros) == 0 {
		s.Errorf("an outcome stayed beyond its retention")
	}
	if again := s.verdict(retentionMicros, policy.ClaimDecided, claim); again.Parts[0].Remaining != 3 {
		s.Errorf("forgotten and asked again: %+v, want charged again", again)
	}
}
