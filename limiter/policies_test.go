package limiter_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/policy"
)

// A change that the instance has not heard of is met by the first call under
// the old set, which is matched again under the new one.
func TestAPolicyChangeUnderWayIsMatchedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		changed := s.install(t, "op", 5, `, "durability": "fast", "costs": {"default": 2}`)
		if d := r.ask(request("op", "A", 0)).is(true, 3); d.Policy != changed {
			t.Errorf("decided under version %d", d.Policy.Version)
		}
		s.sends(t, take, take)
		other := s.install(t, "other", 7, "")
		results := make([]policy.Result, 3)
		r.DecideBatch(t.Context(), []*policy.Request{
			request("op", "A", 0), request("other", "A", 1), request("nobody", "A", 1),
		}, results)
		if got := results[0]; got.Err != nil || got.Decision.Remaining != 1 {
			t.Errorf("got %+v", got)
		}
		// What matched nothing under the old set asked no store and is answered by it.
		hasReason(t, results[1].Err, policy.ReasonNoPolicy)
		hasReason(t, results[2].Err, policy.ReasonNoPolicy)
		if d := r.ask(request("other", "A", 1)).is(true, 6); d.Policy != other {
			t.Errorf("decided by %s", d.Policy.ID)
		}
		r.isCounted(3, "ration_decisions_total")
	})
}

// Who waits behind a call under the old set is matched again with it, in place
// of a call of his own for nothing; and one batch is of one generation.
func TestWhoWaitsIsMatchedAgainToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		first, resume := r.occupy(s, "op")
		old := r.ask(request("op", "A", 1))
		synctest.Wait()
		s.install(t, "op", 20, "")
		r.Refresh()
		synctest.Wait()
		young := r.ask(request("op", "A", 1))
		synctest.Wait()
		resume()
		for _, p := range []*pending{first, old, young} {
			if got := <-p.result; got.Err != nil || got.Decision.Policy.Version != 2 {
				t.Errorf("got %+v", got)
			}
		}
		r.ask(request("op", "A", 1)).is(true, 7) // a full bucket of 10 kept what it had
		var generations []int64
		for _, c := range s.calls() {
			generations = append(generations, c.batch.Generation)
		}
		if slices.Contains(generations, 1) {
			t.Errorf("calls of generations %v, behind the first, which was of 1", generations)
		}
	})
}

// script is a source of policies that answers as it is told.
type script struct {
	mu     sync.Mutex
	since  []int64 // that it was asked for
	answer func(since int64) (int64, []*policy.Installed, error)
}

func (s *script) Load(_ context.Context, since int64) (int64, []*policy.Installed, error) {
	s.mu.Lock()
	s.since = append(s.since, since)
	answer := s.answer
	s.mu.Unlock()
	return answer(since)
}

func (s *script) answers(generation int64, changed ...*policy.Installed) {
	s.says(func(since int64) (int64, []*policy.Installed, error) {
		if generation == since {
			return generation, nil, nil
		}
		return generation, changed, nil
	})
}

func (s *script) says(answer func(since int64) (int64, []*policy.Installed, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// asked gives the generations it was asked for since the last time.
func (s *script) asked() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := s.since
	s.since = nil
	return since
}

// follow starts a limiter whose policies are scripted.
func follow(t *testing.T, s *store) (*script, *running) {
	t.Helper()
	policies := &script{}
	installed, _ := s.Policies(t.Context())
	generation, _ := s.Generation(t.Context())
	policies.answers(generation, installed...)
	return policies, startUnloaded(t, s, func(c *limiter.Config) { c.Policies = policies })
}

// A request that always meets another change is matched again until its
// deadline, and no longer.
func TestMatchingAgainIsBoundedByTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		policies, r := follow(t, s)
		synctest.Wait()
		installed, _ := s.Policies(t.Context())
		generation := int64(100)
		policies.says(func(int64) (int64, []*policy.Installed, error) { // another one at every look
			<-time.After(time.Millisecond)
			generation++
			return generation, installed, nil
		})
		r.Refresh()
		synctest.Wait()
		<-time.After(time.Second)
		for name, ask := range map[string]func(){
			"alone": func() { r.ask(request("op", "A", 1)).fails(policy.ReasonStoreUnavailable) },
			"a batch": func() {
				for _, got := range r.together("op", "A", "B") {
					hasReason(t, got.Err, policy.ReasonStoreUnavailable)
				}
			},
		} {
			begun := time.Now()
			ask()
			if waited := time.Since(begun); waited != timeout {
				t.Errorf("%s: it waited for %s, want %s", name, waited, timeout)
			}
			if calls := len(s.calls()); calls < 10 || calls > int(timeout/time.Millisecond)+1 {
				t.Errorf("%s: %d calls in %s, want one for each look at the policies", name, calls, timeout)
			}
		}
	})
}

// A look that is under way when a request meets a change may be what brings it:
// nobody waits for one more.
func TestTheLookUnderWayIsEnough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		policies, r := follow(t, s)
		synctest.Wait()
		changed := s.install(t, "op", 20, "")
		generation, _ := s.Generation(t.Context())
		loads := 0
		policies.says(func(int64) (int64, []*policy.Installed, error) {
			if loads++; loads == 1 {
				<-time.After(10 * time.Millisecond)
			} else {
				<-time.After(time.Hour)
			}
			return generation, []*policy.Installed{changed}, nil
		})
		r.Refresh()
		synctest.Wait()
		begun := time.Now()
		if d := r.ask(request("op", "A", 1)).is(true, 9); d.Policy != changed {
			t.Errorf("decided under version %d", d.Policy.Version)
		}
		if waited := time.Since(begun); waited != 10*time.Millisecond {
			t.Errorf("it waited for %s", waited)
		}
	})
}

// Policies may change many times while a request waits: it is decided when they
// rest.
func TestManyChangesInARowFailNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		changes := 10
		s.breaks(func(sentCall) error {
			if changes > 0 {
				changes--
				s.install(t, "op", 10+changes, "")
			}
			return nil
		})
		r.ask(request("op", "A", 1)).is(true, 9)
	})
}

// When the new policies cannot be loaded, the deadline ends the wait.
func TestAStaleSetIsWaitedForWithinTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		s.fails(errors.New("the test wants no loads"))
		s.install(t, "op", 20, "")
		begun := time.Now()
		r.ask(within(20, request("op", "A", 1))).fails(policy.ReasonStoreUnavailable)
		if waited := time.Since(begun); waited != 20*time.Millisecond {
			t.Errorf("it waited for %s", waited)
		}
		s.fails(nil)
		<-time.After(250 * time.Millisecond) // the next try after a failure
		synctest.Wait()
		r.ask(request("op", "A", 1)).is(true, 9)
	})
}

func TestALoadThatFailsKeepsTheSetInForce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		s.fails(errors.New("the test wants no loads"))
		before := s.loaded()
		for range 100 {
			r.Refresh() // whoever wishes, a store that fails is asked four times a second
			<-time.After(10 * time.Millisecond)
		}
		if tries := s.loaded() - before; tries < 4 || tries > 5 {
			t.Errorf("%d tries in a second", tries)
		}
		r.ask(request("op", "A", 1)).is(true, 9)
	})
}

// Without any news a change is found by the poll.
func TestPoliciesArePolled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		r := start(t, s)
		s.install(t, "op", 10, "")
		r.ask(request("op", "A", 1)).fails(policy.ReasonNoPolicy)
		<-time.After(10 * time.Second)
		synctest.Wait()
		r.ask(request("op", "A", 1)).is(true, 9)
		s.install(t, "op2", 10, "")
		r.Refresh()
		synctest.Wait()
		r.ask(request("op2", "A", 1)).is(true, 9)
	})
}

// A tombstone takes its policy out of force.
func TestADeletedPolicyMatchesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		installed := s.install(t, "op", 10, "")
		policies, r := follow(t, s)
		synctest.Wait()
		r.ask(request("op", "A", 1)).is(true, 9)
		tombstone := *installed
		tombstone.Version, tombstone.Deleted = 2, true
		early, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Await(early, &tombstone); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a tombstone is awaited before it is there: %v", err)
		}
		policies.answers(2, &tombstone)
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Await(late, &tombstone); err != nil {
			t.Errorf("a tombstone is awaited: %v", err)
		}
		r.ask(request("op", "A", 1)).fails(policy.ReasonNoPolicy)
	})
}

func TestNothingIsDecidedBeforePoliciesAreLoaded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		s.fails(errors.New("the test wants no loads"))
		r := startUnloaded(t, s)
		synctest.Wait()
		if r.Loaded() {
			t.Error("it says that policies are loaded")
		}
		r.ask(request("op", "A", 1)).fails(policy.ReasonStoreUnavailable)
		for _, got := range r.together("op", "A", "B") {
			hasReason(t, got.Err, policy.ReasonStoreUnavailable)
		}
		s.fails(nil)
		if err := r.AwaitLoaded(t.Context()); err != nil || !r.Loaded() {
			t.Errorf("got %v, loaded %t", err, r.Loaded())
		}
		r.ask(request("op", "A", 1)).is(true, 9)
	})
}

func TestAVersionIsAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		r := start(t, s)
		begun := time.Now()
		installed := s.install(t, "op", 10, "")
		if err := r.Await(t.Context(), installed); err != nil {
			t.Error(err)
		}
		r.ask(request("op", "A", 1)).is(true, 9)
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("it took %s", waited)
		}
		s.fails(errors.New("the test wants no loads"))
		installed = s.install(t, "op", 20, "")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Await(ctx, installed); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// A store that is older than what is known here is read anew, whole.
func TestAStoreRestoredFromABackup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		kept, gone := s.install(t, "kept", 10, ""), s.install(t, "gone", 10, "")
		policies, r := follow(t, s)
		policies.answers(7, kept, gone)
		r.Refresh()
		synctest.Wait()
		policies.asked()

		failing := true
		policies.says(func(since int64) (int64, []*policy.Installed, error) {
			switch {
			case since > 3:
				return 3, nil, nil
			case failing:
				failing = false
				return 0, nil, errors.New("the test wants this load to fail")
			default:
				return 3, []*policy.Installed{kept}, nil
			}
		})
		r.Refresh()
		synctest.Wait()
		r.isCounted(7, "ration_policy_generation")
		<-time.After(time.Second)
		synctest.Wait()
		if asked := policies.asked(); !slices.Equal(asked, []int64{7, 0, 0}) {
			t.Errorf("loads since %v, want 7, then all until it succeeds", asked)
		}
		r.isCounted(3, "ration_policy_generation")
		r.isCounted(1, "ration_policy_version")
		r.ask(request("gone", "A", 1)).fails(policy.ReasonNoPolicy)
	})
}
