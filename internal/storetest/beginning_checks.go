package storetest

import (
	"slices"

	"github.com/rationhq/ration/policy"
)

// beginningChecks are the guarantees of a change after which what was kept
// counts no more, and of deletion.
func beginningChecks() []check {
	return []check{
		{"reset, nothing is spent", resetSpendsNothing},
		{"restarted empty, all of the limit is spent at the change", restartedEmpty},
		{"restarted full, nothing is spent and nothing that was kept comes back", restartedFull},
		{"what says which state is kept changes with a restart only, and every member is named", restartsAreNamed},
		{"the same content is a version when it begins anew", sameContentBeginsAnew},
		{"what was charged before a beginning is not settled in what came after", beginningIsNotSettled},
		{"a clock that is behind a beginning finds what the beginning left", beginningAheadOfTheClock},
		{"a deleted policy is none, and comes back with the next version, anew", deletedComesBack},
		{"slots outlive all that becomes of their policy", slotsOutliveBeginnings},
		{"the version that was deleted is no version to replace", deletedIsReplacedByNobody},
	}
}

// keptLimits are limits of every algorithm whose state can begin anew; nothing
// comes back within the first minute.
var keptLimits = []struct {
	id    string
	limit func(limit int64) string
}{
	{"bucket", func(limit int64) string { return bucketOf(limit, "1", "100") }},
	{"fixed", func(limit int64) string { return fixedWindow(limit, "60") }},
	{"counter", func(limit int64) string { return slidingCounter(limit, "60") }},
	{"strict", func(limit int64) string { return strictCounter(limit, "60") }},
	{"log", func(limit int64) string { return slidingLog(limit, "60") }},
}

func resetSpendsNothing(s *scene) {
	for _, kept := range keptLimits {
		s.put(0, kept.id, kept.limit(10))
		s.passes(0, kept.id, "key", 7, 3)
		s.putBy(second, kept.id, policy.Reset, policy.StartNone, kept.limit(10))
		s.passes(second, kept.id, "key", 4, 6)
		s.left(second, kept.id, "absent", 10)
	}
}

func restartedEmpty(s *scene) {
	waits := []int64{99 * second, 58 * second, 64 * second, 60 * second, 59 * second}
	for i, kept := range keptLimits {
		s.put(0, kept.id, kept.limit(10))
		s.passes(0, kept.id, "key", 7, 3)
		s.putBy(second, kept.id, policy.Restart, policy.StartEmpty, kept.limit(10))
		s.put(2*second, kept.id, kept.limit(11))
		for _, key := range []string{"key", "absent"} {
			if kept.id == "bucket" {
				s.waits(2*second, kept.id, key, 1, 0, waits[i])
			} else {
				s.waits(2*second, kept.id, key, 2, 1, waits[i]) // what was used is kept, so a raise gives one more
			}
		}
	}
}

// restartedFull: what a policy kept as one algorithm is not there when it comes
// back to it, cleaned or not.
func restartedFull(s *scene) {
	for _, cleans := range []bool{false, true} {
		for _, first := range keptLimits {
			for _, then := range keptLimits {
				id := first.id + "-" + then.id
				s.putBy(0, id, policy.Restart, policy.StartFull, first.limit(10))
				s.passes(0, id, "key", 8, 2)
				s.putBy(second, id, policy.Restart, policy.StartFull, then.limit(10))
				s.passes(second, id, "key", 7, 3)
				if cleans {
					s.clean(second)
				}
				s.putBy(2*second, id, policy.Restart, policy.StartFull, first.limit(10))
				s.passes(2*second, id, "key", 6, 4)
			}
		}
	}
}

func restartsAreNamed(s *scene) {
	s.put(0, "p", fixedWindow(10, "60"))
	s.passes(0, "p", "key", 4, 6)
	other := policy.Durable - s.durability
	before := s.generation
	for _, c := range []struct {
		durability policy.Durability
		limit      string
		pointers   []string
	}{
		{other, fixedWindow(20, "60"), []string{"/durability"}},
		{s.durability, fixedWindow(20, "61"), []string{"/limit/windowSeconds"}},
		{other, bucketOf(10, "1", "1"), []string{"/durability", "/limit/algorithm", "/limit/windowSeconds"}},
		{s.durability, strictCounter(10, "60"), []string{"/limit/algorithm", "/limit/strict"}},
	} {
		for _, rule := range []policy.Balances{policy.Keep, policy.Reset} {
			change, err := changeTo(c.durability, policy.Enforce, c.limit)
			if err != nil {
				s.Fatalf("policy of limit %s: %v", c.limit, err)
			}
			change.Balances = rule
			_, err = s.store.Install(s.Context(), "p", change, 1, epochMicros+second)
			if refusal, known := refusalOf(err); !known || !slices.Equal(refusal, c.pointers) {
				s.Errorf("%s to %s: %v, want %v refused", rule, c.limit, err, c.pointers)
			}
		}
	}
	if s.reload(); s.generation != before {
		s.Errorf("a refused change raised the generation from %d to %d", before, s.generation)
	}
	s.left(second, "p", "key", 6)
}

func sameContentBeginsAnew(s *scene) {
	s.put(0, "p", fixedWindow(10, "60"))
	s.passes(0, "p", "key", 4, 6)
	s.put(0, "p", fixedWindow(10, "60"))
	for version, change := range []*policy.Change{
		1: s.changeBy(policy.Reset, policy.StartNone, fixedWindow(10, "60")),
		2: s.changeBy(policy.Restart, policy.StartFull, fixedWindow(10, "60")),
	} {
		if change == nil {
			continue
		}
		if got := s.putChange(second, "p", change); got.Version != version+1 {
			s.Errorf("%s made version %d, want %d", change.Balances, got.Version, version+1)
		}
		s.passes(second, "p", "key", 4, 6)
	}
}

func beginningIsNotSettled(s *scene) {
	for _, kept := range keptLimits {
		for i, begin := range []func(){
			func() { s.putBy(second, kept.id, policy.Reset, policy.StartNone, kept.limit(10)) },
			func() { s.putBy(second, kept.id, policy.Restart, policy.StartEmpty, kept.limit(10)) },
			func() { s.putBy(second, kept.id, policy.Restart, policy.StartFull, concurrency(10, "60")) },
			func() { s.delete(second, kept.id) },
		} {
			s.putBy(0, kept.id, policy.Restart, policy.StartFull, kept.limit(10))
			name := kept.id + string(rune('a'+i))
			s.operates(0, name, s.on(kept.id, "key", 7))
			begin()
			s.settles(second, name, 2, false, false)
			s.settle(second, name, 2, policy.SettleReplayed)
			if s.version(kept.id) > 0 {
				s.left(second, kept.id, "key", []int64{10, 0, 10}[i])
			}
		}
	}
}

// beginningAheadOfTheClock: the clock was set back, so that keys stand ahead of
// it. What begins anew begins at the change, and not where the keys stood.
func beginningAheadOfTheClock(s *scene) {
	for _, kept := range keptLimits {
		s.put(0, kept.id, kept.limit(10))
		s.passes(900*second, kept.id, "key", 7, 3)
		s.putBy(second, kept.id, policy.Reset, policy.StartNone, kept.limit(10))
		s.passes(0, kept.id, "key", 10, 0)
	}
	s.waits(102*second, "bucket", "key", 2, 1, 99*second)
}

func deletedComesBack(s *scene) {
	for _, kept := range keptLimits {
		s.put(0, kept.id, kept.limit(10))
		s.passes(0, kept.id, "key", 7, 3)
		before := s.generation
		s.delete(second, kept.id)
		if s.generation == before {
			s.Errorf("a deletion left the generation at %d", before)
		}
	}
	if policies, err := s.store.Policies(s.Context()); err != nil || len(policies) != 0 {
		s.Errorf("%d policies, %v, after all were deleted", len(policies), err)
	}
	s.clean(second)
	for _, kept := range keptLimits {
		_, err := s.store.Install(s.Context(), kept.id, s.changeTo(policy.Enforce, kept.limit(10)), 0, epochMicros+second)
		if refusal, known := refusalOf(err); !known || !slices.Equal(refusal, []string{"/balances"}) {
			s.Errorf("%s came back as if it had never been away: %v", kept.id, err)
		}
		if got := s.putBy(0, kept.id, policy.Reset, policy.StartNone, kept.limit(10)); got.Version != 3 || got.InstalledAtMicros != epochMicros+second {
			s.Errorf("%s came back as %+v, want version 3", kept.id, got)
		}
		s.passes(second, kept.id, "key", 10, 0)
	}
}

func slotsOutliveBeginnings(s *scene) {
	s.put(0, "p", concurrency(3, "60"))
	first, second1 := s.acquires(0, "p", "key", 1), s.acquires(0, "p", "key", 1)
	s.putBy(second, "p", policy.Restart, policy.StartFull, concurrency(5, "60"))
	s.left(second, "p", "key", 3)
	s.putBy(second, "p", policy.Restart, policy.StartFull, fixedWindow(10, "60"))
	s.passes(second, "p", "key", 4, 6)
	s.renews(2*second, first.ID, 62*second)
	s.delete(3*second, "p")
	s.releases(3*second, second1.ID, true)
	s.renews(4*second, first.ID, 64*second)
	s.clean(4 * second)
	s.putBy(5*second, "p", policy.Restart, policy.StartFull, concurrency(3, "60"))
	s.left(5*second, "p", "key", 2)
	s.shows(64*second, "p", "key", 3, 0)
}

func deletedIsReplacedByNobody(s *scene) {
	s.put(0, "p", fixedWindow(10, "60"))
	if err := s.store.Delete(s.Context(), "p", 2, epochMicros); !isConflict(err) {
		s.Errorf("a version to come was deleted: %v", err)
	}
	s.delete(0, "p")
	for _, version := range []int{1, 2} {
		change := s.changeBy(policy.Restart, policy.StartFull, fixedWindow(10, "60"))
		if _, err := s.store.Install(s.Context(), "p", change, version, epochMicros); !isConflict(err) {
			s.Errorf("version %d, which was deleted, was replaced: %v", version, err)
		}
		if err := s.store.Delete(s.Context(), "p", version, epochMicros); !isConflict(err) {
			s.Errorf("version %d was deleted twice: %v", version, err)
		}
	}
	if err := s.store.Delete(s.Context(), "unheard", 0, epochMicros); !isConflict(err) {
		s.Errorf("what never was, was deleted: %v", err)
	}
}
