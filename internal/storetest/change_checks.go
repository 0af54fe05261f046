package storetest

import (
	"github.com/rationhq/ration/policy"
)

// changeChecks are the guarantees of a policy change under the rules that carry
// over what is kept.
func changeChecks() []check {
	return []check{
		{"versions count from 1 and the expected one is required", versionsAreExpected},
		{"identical content is no change", identicalContent},
		{"lowered from 40 to 10, no key is allowed more than 10", lowered},
		{"raised from 10 to 100, no key gains a token it did not earn", raised},
		{"a balance crosses into other units rounded down", crossesIntoOtherUnits},
		{"a bucket several versions behind passes through each of them", severalVersionsBehind},
		{"the idle bucket passes through every version", idleThroughVersions},
		{"a version earns from its installation on, not before", earnsFromInstallation},
		{"installedAt never steps back", installedAtIsMonotone},
		{"scaled, a key keeps its fraction of the capacity", scaled},
		{"a new limit holds from the next call on, under its version", limitHoldsAtOnce},
		{"the policies read back are the ones installed", policiesReadBack},
	}
}

func versionsAreExpected(s *scene) {
	change := s.change(10, "1", "1")
	install := func(expected int) (*policy.Installed, error) {
		return s.store.Install(s.Context(), "scene", change, expected, epochMicros)
	}
	if _, err := install(1); !isConflict(err) {
		s.Errorf("version 1 of a policy that does not exist: %v, want a version conflict", err)
	}
	s.policy = s.install(0, 10, "1", "1")
	if s.policy.Version != 1 || s.policy.InstalledAtMicros != epochMicros {
		s.Errorf("the first version is %d, installed at %d", s.policy.Version, s.policy.InstalledAtMicros)
	}
	if _, err := install(0); !isConflict(err) {
		s.Errorf("created twice: %v, want a version conflict", err)
	}
	change = s.change(20, "1", "1")
	for _, expected := range []int{0, 2} {
		if _, err := install(expected); !isConflict(err) {
			s.Errorf("expected version %d of 1: %v, want a version conflict", expected, err)
		}
	}
	before := *s.policy
	if s.install(second, 20, "1", "1"); s.policy.Version != 2 || s.policy.Number != before.Number {
		s.Errorf("version 1, number %d became version %d, number %d", before.Number, s.policy.Version, s.policy.Number)
	}
}

func identicalContent(s *scene) {
	first := s.install(0, 10, "1", "1")
	s.spend(0, "key", 4)
	generation := s.generation
	again := s.install(100*second, 10, "1", "1")
	if again.Version != 1 || again.InstalledAtMicros != first.InstalledAtMicros || s.generation != generation {
		s.Errorf("the same content again: version %d, installed at %d, generation %d of %d",
			again.Version, again.InstalledAtMicros, s.generation, generation)
	}
	s.holds(second, "key", 7)
}

func lowered(s *scene) {
	s.install(0, 40, "1", "1000")
	s.spend(0, "used", 3)
	s.spend(0, "nearly empty", 36)
	s.install(second, 10, "1", "1000")
	for _, key := range []string{"used", "absent", "absent too"} {
		got := s.ask(second, key, 40, 1)
		if got.Admitted != 10 || got.Remaining != 0 || got.RetryAfterMicros != 1000*second {
			s.Errorf("%s: %+v, want 10 admitted", key, got)
		}
	}
	if got := s.ask(second, "nearly empty", 40, 1); got.Admitted != 4 {
		s.Errorf("nearly empty: %+v, want its 4 admitted", got)
	}
}

func raised(s *scene) {
	s.install(0, 10, "1", "1000")
	s.spend(0, "used", 7)
	s.install(2000*second, 100, "1", "10")
	for key, want := range map[string]int64{"used": 5, "absent": 10} {
		s.holds(2000*second, key, want)
		s.holds(2009*second, key, want)
		s.holds(2010*second, key, want+1)
		s.holds(2010*second+year, key, 100)
	}
}

func crossesIntoOtherUnits(s *scene) {
	// From units of a 3,000,000th token, one earned per microsecond, to units
	// of a 2,000,000th, seven per microsecond. What is left over at the change
	// shows in the wait for 5 tokens, 10,000,000 units.
	for i, c := range []struct{ earned, wait int64 }{
		{0, 1_428_572}, // 0 units: 10,000,000/7
		{1, 1_428_572}, // 2/3 are 0
		{2, 1_428_572}, // 4/3 are 1
		{3, 1_428_572}, // 2
		{4, 1_428_572}, // 8/3 are 2; 3 would make it 1,428,571
		{5, 1_428_571}, // 10/3 are 3
	} {
		s.install(int64(2*i)*day, 10, "1", "3")
		at := int64(2*i+1)*day + second
		s.spend(at, "key", 10)
		s.install(at+c.earned, 10, "7", "2")
		s.deny(at+c.earned, "key", 5, 0, c.wait)
	}
}

func severalVersionsBehind(s *scene) {
	s.install(0, 10, "1", "1")
	s.spend(0, "key", 10)
	s.install(4*second, 100, "1", "10")  // 4 earned
	s.install(34*second, 5, "1", "3")    // 3 more are 7, clamped to 5
	s.install(40*second, 100, "3", "7")  // full at 5, earns none
	s.install(47*second, 100, "7", "11") // 3 more: 8
	s.allow(58*second, "key", 1, 14)     // 7 more: 15
	s.install(59*second, 3, "1", "1")    // 14 and a bit, clamped to 3
	s.install(60*second, 9, "1", "1")
	s.install(61*second, 8, "2", "1") // 3 and 1
	s.allow(62*second, "key", 6, 0)   // and 2
	s.deny(62*second, "key", 1, 0, second/2)
}

func idleThroughVersions(s *scene) {
	s.install(0, 10, "1", "1")
	s.install(10*second, 100, "1", "10")
	s.holds(10*second, "a", 10)
	s.holds(30*second, "a", 12)
	s.install(30*second, 11, "1", "1")
	s.holds(30*second, "b", 11)
	s.holds(90*second, "b", 11)
	s.install(90*second, 1000, "1", "7")
	s.allow(104*second, "c", 13, 0)
	s.deny(104*second, "c", 1, 0, 7*second)
	s.allow(104*second, "d", 1, 12)
}

func earnsFromInstallation(s *scene) {
	// The clock stands behind the installation: the bucket has earned under
	// the old version up to there, and earns nothing more until then.
	s.install(0, 100, "1", "1")
	s.spend(0, "key", 100)
	s.install(50*second, 100, "10", "1")
	s.deny(20*second, "key", 51, 50, 30*second+second/10)
	s.deny(50*second, "key", 51, 50, second/10)
	s.holds(51*second, "key", 60)
}

func installedAtIsMonotone(s *scene) {
	s.install(100*second, 10, "1", "1")
	s.spend(100*second, "key", 10)
	second1 := s.install(40*second, 20, "2", "1")
	if second1.InstalledAtMicros != epochMicros+100*second {
		s.Errorf("installed at %d s after a step back from 100 s", (second1.InstalledAtMicros-epochMicros)/second)
	}
	third := s.install(70*second, 30, "3", "1")
	if third.InstalledAtMicros != epochMicros+100*second {
		s.Errorf("installed at %d s after a step back from 100 s", (third.InstalledAtMicros-epochMicros)/second)
	}
	s.deny(70*second, "key", 3, 0, 31*second)
	s.holds(101*second, "key", 3)
	s.holds(101*second, "absent", 13)
}

func scaled(s *scene) {
	s.install(0, 40, "1", "1000")
	s.spend(0, "used", 10)
	s.put(0, "p", bucketOf(4, "1", "1000"))
	s.operates(0, "owing", s.on("p", "owing", 2))
	s.settles(0, "owing", 5, true, false) // 1 below nothing
	scale := func(at int64, id string, capacity int64) {
		s.policy = s.putBy(at, id, policy.Scale, policy.StartNone, bucketOf(capacity, "1", "1000"))
	}
	scale(500*second, "p", 8) // half a token was earned: half below nothing is 1 below
	s.waits(500*second, "p", "owing", 1, 0, 2000*second)
	scale(500*second, "scene", 10) // 30 and a half of 40
	s.deny(500*second, "used", 8, 7, 375*second)
	s.holds(500*second, "absent", 10)
	scale(500*second, "scene", 80)
	s.holds(500*second, "used", 61)
	s.holds(500*second, "absent too", 80)
	scale(501*second, "scene", 1)
	s.holds(501*second, "used", 0)
	s.allow(501*second, "still absent", 1, 0)
}

func limitHoldsAtOnce(s *scene) {
	s.put(0, "p", fixedWindow(100, "60"))
	s.passes(0, "p", "key", 1, 99)
	s.put(5*second, "p", fixedWindow(10, "60"))
	if part := s.passes(5*second, "p", "key", 1, 8); part.Version != 2 {
		s.Errorf("decided under version %d", part.Version)
	}
	if allowed := s.admittedTogether(5*second, "p", 9, "key"); allowed != 8 {
		s.Errorf("%d more of 9 are allowed, want 8", allowed)
	}
}

func policiesReadBack(s *scene) {
	s.install(0, 10, "1", "1")
	s.install(second, 20, "0.3", "7")
	other, err := s.store.Install(s.Context(), "other", s.change(5, "1", "3"), 0, epochMicros+2*second)
	if err != nil {
		s.Fatalf("install another policy: %v", err)
	}
	before := s.generation
	if s.reload(); s.generation == before {
		s.Errorf("a new policy left the generation at %d", before)
	}
	policies, err := s.store.Policies(s.Context())
	if err != nil {
		s.Fatalf("read the policies: %v", err)
	}
	if len(policies) != 2 || other.Number == s.policy.Number {
		s.Fatalf("%d policies, numbers %d and %d", len(policies), s.policy.Number, other.Number)
	}
	for _, got := range policies {
		want := s.policy
		if got.ID == "other" {
			want = other
		}
		if got.Number != want.Number || got.ID != want.ID || got.Version != want.Version ||
			got.InstalledAtMicros != want.InstalledAtMicros || !got.Spec.Equal(want.Spec) {
			s.Errorf("read back %+v, installed %+v", got, want)
		}
	}
}
