package limiter_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rationhq/ration/policy"
)

// keyOfAccount is the key under a policy of install.
func keyOfAccount(p *policy.Installed, account string) policy.Key {
	return policy.KeyOf(p.ID, p.Spec, &request(p.ID, account, 1).Values)
}

// hasKey says whether a call asks for a key.
func (c sentCall) hasKey(key policy.Key) bool {
	return slices.ContainsFunc(c.batch.Asks, func(ask policy.Ask) bool { return ask.Key == key }) ||
		slices.ContainsFunc(c.claims.Claims, func(claim policy.Claim) bool { return claims(&claim, key) })
}

// claims says whether a claim asks for a key.
func claims(claim *policy.Claim, key policy.Key) bool {
	return slices.ContainsFunc(claim.Checks, func(check policy.Check) bool { return check.Key == key })
}

// together sends one request of cost 1 for each account as one batch of calls.
func (r *running) together(operation string, accounts ...string) map[string]policy.Result {
	r.t.Helper()
	var requests []*policy.Request
	for _, account := range accounts {
		requests = append(requests, request(operation, account, 1))
	}
	results := make([]policy.Result, len(requests))
	r.DecideBatch(r.t.Context(), requests, results)
	byAccount := map[string]policy.Result{}
	for i, account := range accounts {
		byAccount[account] = results[i]
	}
	return byAccount
}

// sends expects exactly these calls since the last time.
func (s *store) sends(t *testing.T, want ...string) {
	t.Helper()
	if got := s.functions(); !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
}

// failsOnce gives an error to the first call.
func failsOnce(err error) func(sentCall) error {
	var met atomic.Bool
	return func(c sentCall) error {
		if c.function != recovery && met.CompareAndSwap(false, true) {
			return err
		}
		return nil
	}
}

func TestLostStateIsRecoveredOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		s.breaks(failsOnce(fault(policy.StoreStateLost)))
		r.ask(request("op", "A", 1)).is(true, 9)
		s.sends(t, take, recovery, take)
		s.breaks(func(c sentCall) error { return fault(policy.StoreStateLost) })
		r.ask(request("op", "A", 1)).fails(policy.ReasonStoreUnavailable)
		s.sends(t, take, recovery)
		s.breaks(func(c sentCall) error {
			if c.function == recovery {
				return nil
			}
			return fault(policy.StoreStateLost)
		})
		r.ask(request("op", "A", 1)).fails(policy.ReasonStoreUnavailable)
		s.sends(t, take, recovery, take) // lost again: no third time
		r.isCounted(4, "ration_store_errors_total", "class", "state_lost")
	})
}

// A held row costs its own callers their answer and nobody else.
func TestAHeldRowFailsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := s.install(t, "op", 10, "")
		r := start(t, s)
		held, fresh := keyOfAccount(p, "held"), keyOfAccount(p, "fresh")
		s.breaks(func(c sentCall) error {
			if c.function != takeNewSkip && c.hasKey(held) {
				return fault(policy.StoreHeld)
			}
			return nil
		})
		s.leaves(func(c sentCall, key policy.Key) policy.AskStatus {
			switch {
			case c.function == takeNewSkip && key == held:
				return policy.HeldByOther
			case c.function != takeNewAlone && key == fresh: // has no row yet
				return policy.Again
			}
			return policy.Answered
		})
		results := r.together("op", "A", "held", "B", "fresh")
		hasReason(t, results["held"].Err, policy.ReasonStoreUnavailable)
		if isUnsure(results["held"].Err) {
			t.Error("what was held and rolled back is uncertain")
		}
		for _, account := range []string{"A", "B", "fresh"} {
			if got := results[account]; got.Err != nil || got.Decision.Remaining != 9 {
				t.Errorf("%s: %+v, want it decided", account, got)
			}
		}
		s.sends(t, take, takeNewSkip, takeNewAlone)
		r.ask(request("op", "A", 1)).is(true, 8)
	})
}

// A new key that somebody else inserts at the same time is held too, and its
// neighbours among the new keys are not.
func TestANewKeyInUseFailsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := s.install(t, "op", 10, "")
		r := start(t, s)
		inserted, contended := keyOfAccount(p, "inserted"), keyOfAccount(p, "contended")
		s.breaks(func(c sentCall) error {
			if c.function != take && c.function != takeNewSkip && c.hasKey(inserted) {
				return fault(policy.StoreHeld)
			}
			return nil
		})
		s.leaves(func(c sentCall, key policy.Key) policy.AskStatus {
			if c.function != takeNewAlone || key == contended {
				return policy.Again
			}
			return policy.Answered
		})
		results := r.together("op", "inserted", "A", "contended", "B")
		for _, account := range []string{"inserted", "contended"} {
			hasReason(t, results[account].Err, policy.ReasonStoreUnavailable)
		}
		for _, account := range []string{"A", "B"} {
			if got := results[account]; got.Err != nil || got.Decision.Remaining != 9 {
				t.Errorf("%s: %+v, want it decided", account, got)
			}
		}
		s.sends(t, take, takeNewWait, takeNewSkip, takeNewAlone, takeNewAlone, takeNewAlone, takeNewAlone)
	})
}

func TestABadAskFailsAlone(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]bool{"among others": false, "beside a held row": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				p := s.install(t, "op", 10, "")
				r := start(t, s)
				bad := keyOfAccount(p, "bad")
				s.breaks(func(c sentCall) error {
					switch {
					case held && c.function == take:
						return fault(policy.StoreHeld)
					case c.hasKey(bad):
						return fault(policy.StoreFaulty)
					}
					return nil
				})
				accounts := []string{"A", "B", "C", "bad", "D", "E", "F", "G"}
				for account, got := range r.together("op", accounts...) {
					if account == "bad" {
						hasReason(t, got.Err, policy.ReasonInternal)
					} else if got.Err != nil || got.Decision.Remaining != 9 {
						t.Errorf("%s: %+v, want it decided", account, got)
					}
				}
				if calls := len(s.calls()); calls > 8 {
					t.Errorf("it took %d calls to find one of eight", calls)
				}
				r.ask(request("op", "A", 1)).is(true, 8)
			})
		})
	}
}

// Where everything is bad, the search ends with the time of those who wait.
func TestTheSearchForABadAskIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		s.breaks(func(sentCall) error {
			<-time.After(timeout / 4)
			return fault(policy.StoreFaulty)
		})
		r.together("op", "A", "B", "C", "D", "E", "F", "G", "H")
		<-time.After(time.Second)
		if calls := len(s.calls()); calls > 5 {
			t.Errorf("%d calls, want those of one timeout", calls)
		}
	})
}

// The lane does not charge what nobody waits for any more.
func TestNothingFollowsWhenEverybodyHasLeft(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(sentCall) error{
		"again": func(sentCall) error { return nil },
		"held":  func(sentCall) error { return fault(policy.StoreHeld) },
		"lost":  failsOnce(fault(policy.StoreStateLost)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				s.install(t, "op", 10, "")
				r := start(t, s)
				s.breaks(func(c sentCall) error {
					<-time.After(timeout + time.Millisecond)
					return broken(c)
				})
				s.leaves(func(sentCall, policy.Key) policy.AskStatus { return policy.Again })
				if err := r.ask(request("op", "A", 1)).fails(policy.ReasonStoreUnavailable); !isUnsure(err) {
					t.Errorf("got %v", err)
				}
				<-time.After(time.Second)
				for _, c := range s.calls()[1:] {
					if c.function != recovery {
						t.Errorf("it was followed by %s", c.function)
					}
				}
				r.isCounted(1, "ration_late_results_total", "outcome", "undecided")
			})
		})
	}
}

func TestAStoreWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for _, f := range []policy.StoreFault{policy.StoreUnreachable, policy.StoreUnsure} {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				s.install(t, "op", 10, "")
				r := start(t, s)
				s.breaks(func(sentCall) error { return fault(f) })
				if err := r.ask(request("op", "A", 1)).fails(policy.ReasonStoreUnavailable); isUnsure(err) != (f == policy.StoreUnsure) {
					t.Errorf("got %v", err)
				}
				results := r.together("op", "A", "B")
				for _, got := range results {
					hasReason(t, got.Err, policy.ReasonStoreUnavailable)
				}
				s.sends(t, take, take) // a charge is never repeated
				uncertain := 0.0
				if f == policy.StoreUnsure {
					uncertain = 3
				}
				r.isCounted(uncertain, "ration_uncertain_total", "policy", "op")
				r.isCounted(2, "ration_store_errors_total", "class", f.String())
				s.breaks(func(sentCall) error { return nil })
				r.ask(request("op", "A", 1)).is(true, 9)
			})
		})
	}
}

// What the fast path leaves goes by the settling path, in at most three calls.
func TestWhatTheFastPathLeavesIsSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := s.install(t, "op", 10, "")
		r := start(t, s)
		fresh := keyOfAccount(p, "fresh")
		left := 1 // how many calls leave the fresh key
		s.leaves(func(c sentCall, key policy.Key) policy.AskStatus {
			if key == fresh && left > 0 {
				left--
				return policy.Again
			}
			return policy.Answered
		})
		r.together("op", "A", "fresh", "B")
		sent := s.calls()
		if len(sent) != 2 || sent[1].function != takeNewWait || len(sent[1].batch.Asks) != 1 || !sent[1].hasKey(fresh) {
			t.Errorf("calls %+v, want the fresh key alone by the settling path", sent)
		}
		left = 2
		r.ask(request("op", "fresh", 1)).is(true, 8)
		s.sends(t, take, takeNewWait, takeNewWait)
		left = 99
		r.ask(request("op", "fresh", 1)).fails(policy.ReasonStoreUnavailable)
		s.sends(t, take, takeNewWait, takeNewWait)
	})
}
