package storetest

import (
	"runtime"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/rationhq/ration/internal/memstore"
	"github.com/rationhq/ration/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// faultyStores are named after what they do wrong.
var faultyStores = map[string]func() Store{
	"counts in floats":            newFloats,
	"advises too early":           func() Store { return eager{newModel()} },
	"charges peeks":               func() Store { return greedy{newModel()} },
	"ignores the generation":      func() Store { return obliging{newModel()} },
	"cleans too much":             func() Store { return tidy{newModel()} },
	"backdates versions":          func() Store { return backdating{newModel()} },
	"fills buckets with a change": func() Store { return forgetful{newModel(), map[string]int{}} },

	"begins fixed windows anywhere":          func() Store { return bending{newModel(), shortenFixed} },
	"forgets the window before":              func() Store { return bending{newModel(), forgetPrevious} },
	"takes a strict counter for another":     func() Store { return bending{newModel(), neverStrict} },
	"remembers an entry too long":            func() Store { return bending{newModel(), lengthenLog} },
	"expires slots early":                    func() Store { return bending{newModel(), shortenSlots} },
	"charges the policies one by one":        func() Store { return grasping{newModel()} },
	"lets shadow policies deny":              func() Store { return shy{newModel()} },
	"decides a call from its end":            func() Store { return backwards{newModel()} },
	"takes a stated price for another cost":  func() Store { return oblivious{newModel()} },
	"takes another request for a repeat":     func() Store { return trusting{newModel()} },
	"settles whatever cost comes second":     func() Store { return yielding{newModel()} },
	"keeps a token of a refund":              func() Store { return stingy{newModel()} },
	"renews slots that have expired":         func() Store { return lenient{newModel()} },
	"says that every release is of a holder": func() Store { return agreeable{newModel()} },
	"loses nothing in a crash":               func() Store { return steadfast{newModel()} },

	"keeps what is to be scaled":         func() Store { return rewording{newModel(), keepScaled} },
	"resets what is to be kept":          func() Store { return rewording{newModel(), resetKept} },
	"fills what is to begin empty":       func() Store { return rewording{newModel(), fillEmpty} },
	"restarts what nobody said":          func() Store { return rewording{newModel(), restartAnything} },
	"keeps what is to be reset":          func() Store { return remembering{newModel()} },
	"replaces a version that is deleted": func() Store { return undead{newModel(), map[string]bool{}} },
}

func newModel() Store { return memstore.New(1 << 20) } // more than any test makes

func newFloats() Store {
	return floats{newModel(), map[int32]*policy.Installed{}, map[policy.Key]*float{}}
}

func TestCompareFindsFaults(t *testing.T) {
	t.Parallel()
	for fault, newFaulty := range faultyStores {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			played := game{context: t.Context(), model: newModel(), subject: newFaulty()}
			found := played.play(newHistory(2, roundSteps, pace{stepsBack: true, operations: true, cleansPercent: 2}))
			if found == nil {
				t.Fatalf("a store that %s passes the comparison", fault)
			}
			long := found.at + 1
			found = played.shrink(found)
			t.Logf("cut from %d steps to %d:\n%s", long, found.at+1, found)
			if short := len(found.history.steps); short > 12 {
				t.Errorf("the shortest history has %d steps:\n%s", short, found)
			}
			if again := played.play(found.history); again == nil {
				t.Errorf("the shortest history shows nothing when it is played again:\n%s", found)
			}
		})
	}
}

func TestChecksFindFaults(t *testing.T) {
	t.Parallel()
	for fault, newFaulty := range faultyStores {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			for _, check := range checks() {
				if fails(t, func(tb testing.TB) {
					tb.Helper()
					check.run(newScene(tb, func(testing.TB) Store { return newFaulty() }, policy.Fast))
				}) {
					t.Logf("fails: %s", check.name)
					return
				}
			}
			t.Errorf("a store that %s passes every check", fault)
		})
	}
}

func TestReplayFindsFaults(t *testing.T) {
	t.Parallel()
	for fault, replay := range map[string]func(testing.TB, Store){
		"counts in floats":                ReplayWebAccess,
		"advises too early":               ReplayWebAccess,
		"remembers an entry too long":     ReplayLogins,
		"charges the policies one by one": ReplayLogins,
	} {
		if !fails(t, func(tb testing.TB) {
			tb.Helper()
			replay(tb, faultyStores[fault]())
		}) {
			t.Errorf("a store that %s passes the replay", fault)
		}
	}
}

func TestHistoriesRepeat(t *testing.T) {
	t.Parallel()
	tell := func(seed uint64) string {
		h := newHistory(seed, 300, pace{stepsBack: true, operations: true, cleansPercent: 2})
		return (&difference{history: h, at: len(h.steps) - 1}).String()
	}
	if first, second := tell(5), tell(5); first != second {
		t.Error("the same seed made two histories")
	}
	if tell(5) == tell(6) {
		t.Error("two seeds made the same history")
	}
}

// A history has everything that can become of a policy, as often as it takes.
func TestHistoriesAreFullOfChanges(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	var slots [slotsMax]install
	for _, s := range newHistory(9, 20_000, pace{}).steps {
		switch next := s.(type) {
		case remove:
			seen["removed"]++
		case install:
			seen[next.balances.String()+next.start.String()]++
			if last := slots[next.slot].shape; last.capacity > 0 && !next.shape.sameKind(last) {
				seen["another kind by "+next.balances.String()]++
			}
			slots[next.slot] = next
		}
	}
	for _, change := range []string{
		"keep", "scale", "reset", "restartfull", "restartempty", "removed", "another kind by keep", "another kind by restart",
	} {
		if seen[change] < 30 {
			t.Errorf("%s: %d times in 20,000 steps", change, seen[change])
		}
	}
}

// Every shape a history may install is one the policy package accepts, at the
// very edges too.
func TestShapesAreValid(t *testing.T) {
	t.Parallel()
	h := newHistory(7, 20_000, pace{})
	seen := 0
	for _, s := range h.steps {
		next, ok := s.(install)
		if !ok {
			continue
		}
		seen++
		change, err := next.shape.change()
		if err != nil {
			t.Fatalf("%s: %v", next.shape, err)
		}
		got, want := change.Spec.Limit, next.shape
		if got.Algorithm != want.algorithm || got.Strict != want.strict || got.Capacity != want.capacity ||
			got.SpanMicros != want.spanMicros || change.Spec.Durability != want.durability || change.Spec.Mode != want.mode {
			t.Fatalf("%s was read as %+v", want, change.Spec)
		}
		if want.algorithm == policy.TokenBucket && !slices.Equal([]int64{got.Rate.N, got.Rate.D}, lowestTerms(want.n, want.d)) {
			t.Fatalf("%s was read as %+v", want, got.Rate)
		}
	}
	if seen < 500 {
		t.Errorf("only %d shapes in %d steps", seen, len(h.steps))
	}
}

func lowestTerms(n, d int64) []int64 {
	a, b := n, d
	for b != 0 {
		a, b = b, a%b
	}
	return []int64{n / a, d / a}
}

// fails says whether a test fails, without failing this one.
func fails(t *testing.T, test func(testing.TB)) bool {
	t.Helper()
	watched := &quiet{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(watched)
	}()
	<-done
	return watched.failed
}

// quiet is a test whose failure is only remembered. It is used by one
// goroutine, which a fatal failure ends.
type quiet struct {
	testing.TB

	failed bool
}

func (q *quiet) Helper()               {}
func (q *quiet) Logf(string, ...any)   {}
func (q *quiet) Error(...any)          { q.failed = true }
func (q *quiet) Errorf(string, ...any) { q.failed = true }

func (q *quiet) Fatalf(string, ...any) {
	q.failed = true
	runtime.Goexit()
}
