package limiter_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rationhq/ration/policy"
)

// bound is how long a held row keeps a call that waits for it.
const bound = 40 * time.Millisecond

// holds lets the store behave as if another session held the key's row; a
// fresh key has none that others can see.
func (s *store) holds(held policy.Key, fresh bool) {
	s.breaks(func(c sentCall) error {
		charges := slices.ContainsFunc(c.batch.Asks, func(ask policy.Ask) bool { return ask.Key == held && ask.Count > 0 })
		if charges && c.function != takeNewSkip && (!fresh || c.function != take) {
			<-time.After(bound)
			return fault(policy.StoreHeld)
		}
		return nil
	})
	s.leaves(func(c sentCall, key policy.Key) policy.AskStatus {
		switch {
		case key != held || c.function == takeNewAlone || c.function == takeNewWait:
			return policy.Answered
		case fresh:
			return policy.Again
		case c.function == takeNewSkip:
			return policy.HeldByOther
		}
		return policy.Answered
	})
}

// free ends holds.
func (s *store) free() {
	s.breaks(func(sentCall) error { return nil })
	s.leaves(func(sentCall, policy.Key) policy.AskStatus { return policy.Answered })
}

// Callers who keep asking for a held key wait for it once, when the hold
// begins; their neighbours are all decided.
func TestAHeldRowDoesNotStallItsLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := s.install(t, "op", 100_000, "")
		r := start(t, s)
		s.holds(keyOfAccount(p, "held"), false)
		r.ask(request("op", "held", 1)).fails(policy.ReasonStoreUnavailable)
		s.sends(t, take, takeNewSkip)

		end := time.Now().Add(3 * time.Second)
		var callers sync.WaitGroup
		for i := range 4 {
			callers.Go(func() {
				for time.Now().Before(end) {
					r.ask(request("op", "held", 1)).fails(policy.ReasonStoreUnavailable)
					<-time.After(5 * time.Millisecond)
				}
			})
			callers.Go(func() {
				for time.Now().Before(end) {
					begun := time.Now()
					if _, err := r.Decide(t.Context(), request("op", fmt.Sprint("neighbour", i), 1)); err != nil || time.Since(begun) > 0 {
						t.Errorf("a neighbour waited %s: %v", time.Since(begun), err)
					}
					<-time.After(5 * time.Millisecond)
				}
			})
		}
		callers.Wait()
		asked := 0
		for _, c := range s.calls() {
			switch {
			case c.hasKey(keyOfAccount(p, "held")) && c.function == takeNewSkip && len(c.batch.Asks) == 1:
				asked++
			case c.hasKey(keyOfAccount(p, "held")) || c.function != take:
				t.Errorf("%s with %d keys", c.function, len(c.batch.Asks))
			}
		}
		if asked != 5 {
			t.Errorf("asked %d times in 3 s, want once each 500 ms", asked)
		}
	})
}

func TestAHeldKeyIsAskedAgainAndForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := s.install(t, "op", 10, "")
		r := start(t, s)
		s.holds(keyOfAccount(p, "held"), false)
		r.ask(request("op", "held", 1)).fails(policy.ReasonStoreUnavailable)
		s.sends(t, take, takeNewSkip)

		r.ask(request("op", "held", 1)).fails(policy.ReasonStoreUnavailable)
		s.sends(t)
		peek := request("op", "held", 1)
		peek.Peek = true
		r.ask(peek).is(true, 10) // locks nothing, and says nothing of the hold
		s.sends(t, take)

		s.free()
		r.ask(request("op", "held", 1)).fails(policy.ReasonStoreUnavailable)
		s.sends(t)
		<-time.After(500 * time.Millisecond)
		results := r.together("op", "held", "A")
		if got := results["held"]; got.Err != nil || got.Decision.Remaining != 9 {
			t.Errorf("after the hold: %+v", got)
		}
		s.sends(t, take, takeNewSkip) // apart, and after its neighbour
		r.ask(request("op", "held", 1)).is(true, 8)
		s.sends(t, take)
	})
}

// A hold that nobody can see, an insert that is not committed, is met alone,
// and remembered as well.
func TestAnInsertInUseIsRemembered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := s.install(t, "op", 10, "")
		r := start(t, s)
		s.holds(keyOfAccount(p, "held"), true)
		r.ask(request("op", "held", 1)).fails(policy.ReasonStoreUnavailable)
		<-time.After(time.Second) // until the lane is free
		s.sends(t, take, takeNewWait, takeNewSkip, takeNewAlone)
		for range 10 {
			r.ask(request("op", "held", 1)).fails(policy.ReasonStoreUnavailable)
			r.ask(request("op", "A", 1))
		}
		<-time.After(time.Second)
		for _, c := range s.calls() {
			if c.hasKey(keyOfAccount(p, "held")) && c.function != takeNewSkip && c.function != takeNewAlone {
				t.Errorf("a key that was held goes by %s", c.function)
			}
		}
		s.free()
		r.ask(request("op", "held", 1)).is(true, 9)
	})
}

// Where there is no time left to find out which key is held, the next batch
// asks them all by the way that does not wait.
func TestAHoldFoundTooLateIsSuspected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		s.breaks(func(sentCall) error {
			<-time.After(timeout + time.Millisecond)
			return fault(policy.StoreHeld)
		})
		r.together("op", "A", "B")
		<-time.After(time.Second)
		s.sends(t, take)
		s.free()
		r.together("op", "A", "B", "C")
		s.sends(t, take, takeNewSkip)
		r.together("op", "A", "B", "C")
		s.sends(t, take)
	})
}

// Of several keys that were seen held and may be waited for, one is.
func TestOneHeldKeyAtATimeIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		s.breaks(func(c sentCall) error {
			switch c.function {
			case take:
				<-time.After(timeout + time.Millisecond)
			case takeNewAlone:
				<-time.After(bound)
			default:
				return nil
			}
			return fault(policy.StoreHeld)
		})
		s.leaves(func(sentCall, policy.Key) policy.AskStatus { return policy.Again })
		r.together("op", "A", "B", "C")
		<-time.After(time.Second)
		s.sends(t, take)
		for range 3 {
			r.together("op", "A", "B", "C")
			s.sends(t, takeNewSkip, takeNewAlone)
		}
		r.together("op", "A", "B", "C")
		s.sends(t)
	})
}
