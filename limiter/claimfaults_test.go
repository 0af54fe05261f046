package limiter_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/policy"
)

// claimTogether sends one request of cost 1 for each account and user as one
// batch of calls, and gives the results by account.
func (r *running) claimTogether(accountsAndUsers ...string) map[string]policy.Result {
	r.t.Helper()
	var requests []*policy.Request
	for i := 0; i < len(accountsAndUsers); i += 2 {
		requests = append(requests, by(accountsAndUsers[i], accountsAndUsers[i+1], 1))
	}
	results := make([]policy.Result, len(requests))
	r.DecideBatch(r.t.Context(), requests, results)
	byAccount := map[string]policy.Result{}
	for i, request := range requests {
		byAccount[request.Values[policy.Account]] = results[i]
	}
	return byAccount
}

// areDecided expects permission with so many tokens left.
func areDecided(t *testing.T, results map[string]policy.Result, remaining int64, accounts ...string) {
	t.Helper()
	for _, account := range accounts {
		if got := results[account]; got.Err != nil || !got.Decision.Allowed || got.Decision.Remaining != remaining {
			t.Errorf("%s: %+v, want it allowed with %d remaining", account, got, remaining)
		}
	}
}

// keyOf is the key of a request under a policy.
func keyOf(p *policy.Installed, r *policy.Request) policy.Key {
	return policy.KeyOf(p.ID, p.Spec, &r.Values)
}

// holdsClaims lets the store behave as if another session held the key's row;
// a fresh key has none that others can see.
func (s *store) holdsClaims(held policy.Key, fresh bool) {
	s.breaks(func(c sentCall) error {
		if c.function != decideSkip && c.hasKey(held) {
			<-time.After(bound)
			return fault(policy.StoreHeld)
		}
		return nil
	})
	s.makes(func(c sentCall, claim *policy.Claim) policy.ClaimStatus {
		switch {
		case c.function != decideSkip || !claims(claim, held):
			return policy.ClaimDecided
		case fresh:
			return policy.ClaimAgain
		}
		return policy.ClaimHeld
	})
}

// freeClaims ends holdsClaims.
func (s *store) freeClaims() {
	s.breaks(func(sentCall) error { return nil })
	s.makes(func(sentCall, *policy.Claim) policy.ClaimStatus { return policy.ClaimDecided })
}

// A row that a claim finds held costs the claim its answer and nobody else,
// now and while it stays held: not even those that share another key with it.
func TestAHeldRowFailsItsClaimsAlone(t *testing.T) {
	t.Parallel()
	for name, fresh := range map[string]bool{"a row": false, "an insert that is not committed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				s.installOn(t, "op", "all", `[]`, bucket(100), "")
				account, _ := s.installBoth(t, 10, 1000)
				r := start(t, s, func(c *limiter.Config) { c.DecisionTimeout = time.Minute })
				s.holdsClaims(keyOf(account, request("op", "held", 1)), fresh)
				results := r.claimTogether("A", "U", "held", "U", "B", "U")
				hasReason(t, results["held"].Err, policy.ReasonStoreUnavailable)
				if isUnsure(results["held"].Err) {
					t.Error("what was held and rolled back is uncertain")
				}
				areDecided(t, results, 9, "A", "B")
				want := []string{decideTry, decideSkip}
				if fresh {
					want = append(want, decideAlone)
				}
				s.sends(t, want...)

				for range 3 { // quiet now
					r.ask(by("held", "U", 1)).fails(policy.ReasonStoreUnavailable)
					s.sends(t)
				}
				areDecided(t, r.claimTogether("C", "U"), 9, "C")
				for _, function := range s.functions() {
					if function != decideSkip && function != decideTry {
						t.Errorf("a neighbour goes by %s", function)
					}
				}
				r.ask(by("held", "V", 1)).fails(policy.ReasonStoreUnavailable) // the held key with others: apart, and does not stall
				if sent := s.functions(); sent[0] != decideSkip {
					t.Errorf("calls %q, want the held key not to be waited for first", sent)
				}
				areDecided(t, r.claimTogether("D", "V"), 9, "D")

				s.freeClaims()
				<-time.After(time.Second)
				r.ask(by("held", "U", 1)).is(true, 9)
				s.calls()
				r.ask(by("held", "U", 1)).is(true, 8)
				s.sends(t, decideTry) // forgotten
			})
		})
	}
}

func TestABadClaimFailsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		account, _ := s.installBoth(t, 10, 1000)
		r := start(t, s)
		bad := keyOf(account, request("op", "bad", 1))
		s.breaks(func(c sentCall) error {
			if c.hasKey(bad) {
				return fault(policy.StoreFaulty)
			}
			return nil
		})
		results := r.claimTogether("A", "U", "B", "U", "bad", "U", "C", "U", "D", "U")
		hasReason(t, results["bad"].Err, policy.ReasonInternal)
		areDecided(t, results, 9, "A", "B", "C", "D")
		r.ask(by("A", "U", 1)).is(true, 8)
	})
}

func TestLostStateIsRecoveredForClaims(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.installBoth(t, 10, 10)
		r := start(t, s)
		s.breaks(failsOnce(fault(policy.StoreStateLost)))
		r.ask(by("A", "U", 1)).is(true, 9)
		s.sends(t, decideTry, recovery, decideTry)
	})
}

// What a call leaves is asked again, and nothing else with it.
func TestWhatACallLeavesIsClaimedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		account, _ := s.installBoth(t, 10, 1000)
		r := start(t, s)
		vanished := keyOf(account, request("op", "vanished", 1))
		left := 2
		s.makes(func(_ sentCall, claim *policy.Claim) policy.ClaimStatus {
			if claims(claim, vanished) && left > 0 {
				left--
				return policy.ClaimAgain
			}
			return policy.ClaimDecided
		})
		areDecided(t, r.claimTogether("A", "U", "vanished", "U"), 9, "A", "vanished")
		sent := s.calls()
		if len(sent) != 3 || len(sent[1].claims.Claims) != 1 {
			t.Errorf("%d calls, want the claim that was left alone in two more", len(sent))
		}
		left = 99
		r.ask(by("vanished", "U", 1)).fails(policy.ReasonStoreUnavailable)
		s.sends(t, decideWait, decideWait, decideWait) // it has met somebody
	})
}

// A lane that came in somebody's way has its rows locked for a while.
func TestALaneThatMetRivalsLocksItsRows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.installBoth(t, 1000, 1000)
		r := start(t, s)
		tries := 0
		s.makes(func(sent sentCall, _ *policy.Claim) policy.ClaimStatus {
			if sent.function == decideTry {
				if tries++; tries == 1 {
					return policy.ClaimAgain
				}
			}
			return policy.ClaimDecided
		})
		want := []string{decideTry, decideWait}
		for range 32 {
			want = append(want, decideWait)
		}
		want = append(want, decideTry, decideTry)
		for asked := range int64(len(want) - 1) { // the first takes two calls
			r.ask(by("A", "U", 1)).is(true, 999-asked)
		}
		s.sends(t, want...)
	})
}

// A claim that got no answer may have charged every policy; it is not repeated.
func TestAClaimWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.installBoth(t, 10, 10)
		r := start(t, s)
		s.breaks(func(sentCall) error { return fault(policy.StoreUnsure) })
		if err := r.ask(by("A", "U", 1)).fails(policy.ReasonStoreUnavailable); !isUnsure(err) {
			t.Errorf("got %v", err)
		}
		s.sends(t, decideTry)
		for _, id := range []string{"account", "user"} {
			r.isCounted(1, "ration_uncertain_total", "policy", id)
		}
	})
}

// The lane does not charge what nobody waits for any more.
func TestNoClaimFollowsWhenEverybodyHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.installBoth(t, 10, 10)
		r := start(t, s)
		s.breaks(func(sentCall) error {
			<-time.After(timeout + time.Millisecond)
			return fault(policy.StoreHeld)
		})
		r.claimTogether("A", "U", "B", "U")
		<-time.After(time.Second)
		s.sends(t, decideTry)
		s.freeClaims()
		areDecided(t, r.claimTogether("A", "U", "B", "V"), 9, "A", "B")
		s.sends(t, decideSkip) // what may have been held is not waited for
	})
}
