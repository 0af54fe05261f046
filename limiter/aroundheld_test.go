package limiter_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/policy"
)

// sizes gives the claims of each call since the last time, by function.
func (s *store) sizes() map[string][]int {
	sizes := map[string][]int{}
	for _, c := range s.calls() {
		sizes[c.function] = append(sizes[c.function], len(c.claims.Claims))
	}
	return sizes
}

// manyAccounts are so many accounts, each with the user U.
func manyAccounts(count int) (accounts, accountsAndUsers []string) {
	for i := range count {
		account := fmt.Sprint("account", i)
		accounts, accountsAndUsers = append(accounts, account), append(accountsAndUsers, account, "U")
	}
	return accounts, accountsAndUsers
}

// patientAndRoomy lets every batch be as large as a call may be, and callers
// wait for all that it takes.
func patientAndRoomy(c *limiter.Config) {
	c.DecisionTimeout, c.QueueMax, c.BatchAsksMax = time.Minute, 1000, limiter.BatchAsksBound
}

// A call that may have run into its bound because it was large is followed by
// small ones.
func TestCallsAroundHeldRowsAreSmall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		account, _ := s.installBoth(t, 10, 1000)
		r := start(t, s, patientAndRoomy)
		s.holdsClaims(keyOf(account, request("op", "held", 1)), false)
		accounts, accountsAndUsers := manyAccounts(39)
		results := r.claimTogether(append(accountsAndUsers, "held", "U")...)
		hasReason(t, results["held"].Err, policy.ReasonStoreUnavailable)
		areDecided(t, results, 9, accounts...)
		if sizes := s.sizes(); !slices.Equal(sizes[decideTry], []int{40}) || !slices.Equal(sizes[decideSkip], []int{16, 16, 8}) {
			t.Errorf("calls of %v claims, want 40, and 16, 16, 8 around what is held", sizes)
		}
	})
}

// A machine that is too busy for a call of many claims decides them in calls of
// few. Nobody holds a row, and none is remembered as held.
func TestWhatTakesTooLongIsHalved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.installBoth(t, 10, 1000)
		r := start(t, s, patientAndRoomy)
		s.breaks(func(c sentCall) error {
			if len(c.claims.Claims) > 3 {
				<-time.After(bound)
				return fault(policy.StoreHeld)
			}
			return nil
		})
		accounts, accountsAndUsers := manyAccounts(20)
		areDecided(t, r.claimTogether(accountsAndUsers...), 9, accounts...)
		s.calls()
		r.ask(by("account0", "U", 1)).is(true, 8)
		s.sends(t, decideTry)
	})
}

// A store that gets little done is sent little, so that callers who do not wait
// for long have their answers; and more, little by little, when it gets more
// done.
func TestALaneGoesAtTheStoresPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.installBoth(t, 1000, 1_000_000)
		r := start(t, s, func(c *limiter.Config) { c.QueueMax, c.BatchAsksMax = 1000, limiter.BatchAsksBound })
		s.breaks(func(c sentCall) error {
			if len(c.claims.Claims) > 3 {
				<-time.After(bound)
				return fault(policy.StoreHeld)
			}
			return nil
		})
		_, accountsAndUsers := manyAccounts(20)
		decided := func() (count int) {
			for _, got := range r.claimTogether(accountsAndUsers...) {
				if got.Err == nil {
					count++
				}
			}
			<-time.After(time.Second) // until the lane is free
			return count
		}
		for round := range 20 {
			if count := decided(); round >= 5 && count < 2 {
				t.Errorf("round %d: %d are decided", round, count)
			}
		}
		s.freeClaims()
		for range 10 {
			decided()
		}
		s.calls()
		if count, sizes := decided(), s.sizes()[decideTry]; count != 20 || !slices.Equal(sizes, []int{20}) {
			t.Errorf("%d are decided by calls of %v claims, want 20 by one", count, sizes)
		}
	})
}

// What only may have been held is forgotten when it is decided, also by a
// denial, which locks nothing.
func TestADenialEndsAGuess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.installBoth(t, 10, 1000)
		r := start(t, s)
		s.breaks(func(sentCall) error {
			<-time.After(timeout + time.Millisecond)
			return fault(policy.StoreHeld)
		})
		r.claimTogether("A", "U")
		<-time.After(time.Second)
		s.freeClaims()
		s.calls()
		for _, function := range []string{decideSkip, decideTry} {
			r.ask(by("A", "U", 11)).is(false, 10)
			s.sends(t, function)
		}
	})
}

// A repeat is replayed whoever holds the rows of its keys, and however quiet
// these are kept; a new operation is refused when they are found held again.
func TestARepeatOnAQuietKeyIsReplayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := s.install(t, "op", 10, "")
		r := start(t, s)
		r.ask(under("known", request("op", "A", 1))).is(true, 9)
		s.holdsClaims(keyOf(p, request("op", "A", 1)), false)
		r.ask(under("new", request("op", "A", 1))).fails(policy.ReasonStoreUnavailable)
		s.makes(func(_ sentCall, claim *policy.Claim) policy.ClaimStatus {
			if claim.Operation == policy.OperationKeyOf("", "A", "known") {
				return policy.ClaimDecided // which is a replay
			}
			return policy.ClaimHeld
		})
		s.calls()
		if d := r.ask(under("known", request("op", "A", 1))).is(true, 9); d.Source != policy.FromReplay {
			t.Errorf("got %+v", d)
		}
		s.sends(t, decideSkip)
		r.ask(under("newer", request("op", "A", 1))).fails(policy.ReasonStoreUnavailable)
		s.sends(t, decideSkip)
		s.makes(func(sentCall, *policy.Claim) policy.ClaimStatus { return policy.ClaimAgain })
		r.ask(under("newest", request("op", "A", 1))).fails(policy.ReasonStoreUnavailable)
		s.sends(t, decideSkip) // and not alone, which would wait
	})
}
