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

// installOn puts a policy in force that matches the operation, keyed as per
// says, with a limit in JSON and members beside the usual ones.
func (s *store) installOn(t testing.TB, operation, id, per, limit, members string) *policy.Installed {
	t.Helper()
	return s.installBody(t, id, fmt.Sprintf(`{"match": {"operations": [%q]}, "per": %s, "limit": %s, "costs": {"max": 1000}%s}`,
		operation, per, limit, members))
}

// bucket is a token bucket that earns one token a second.
func bucket(capacity int) string {
	return fmt.Sprintf(`{"algorithm": "token_bucket", "capacity": %d, "refillTokens": 1, "refillSeconds": 1}`, capacity)
}

// slots is a concurrency limit.
func slots(limit int) string {
	return fmt.Sprintf(`{"algorithm": "concurrency", "limit": %d, "ttlSeconds": 60}`, limit)
}

// window is a fixed window of a minute.
func window(limit int) string {
	return fmt.Sprintf(`{"algorithm": "fixed_window", "limit": %d, "windowSeconds": 60}`, limit)
}

// installBoth puts a policy by account and one by user in force on "op".
func (s *store) installBoth(t testing.TB, byAccount, byUser int) (account, user *policy.Installed) {
	t.Helper()
	return s.installOn(t, "op", "account", `["account"]`, bucket(byAccount), ""),
		s.installOn(t, "op", "user", `["user"]`, bucket(byUser), "")
}

// by gives a request of an account's user.
func by(account, user string, cost int64) *policy.Request {
	r := request("op", account, cost)
	r.Values[policy.User] = user
	return r
}

func TestNothingIsTakenUnlessAllAllow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		account, user := s.installBoth(t, 10, 3)
		r := start(t, s)
		d := r.ask(by("A", "U", 2)).is(true, 1)
		if d.Policy != user || d.Detail == nil || len(d.Detail.Parts) != 2 {
			t.Fatalf("got %+v, want the user's policy on top of two", d)
		}
		if parts := d.Detail.Parts; parts[0].Policy != account || parts[0].Remaining != 8 || parts[1].Remaining != 1 {
			t.Errorf("got parts %+v", parts)
		}
		if d := r.ask(by("A", "U", 2)).is(false, 1); d.RetryAfterMicros != 1_000_000 || d.Detail.Parts[0].Remaining != 8 {
			t.Errorf("got %+v, %+v; want the account uncharged", d, d.Detail.Parts)
		}
		r.ask(by("A", "V", 2)).is(true, 1)
		s.sends(t, decideTry, decideTry, decideTry)
		r.isCounted(3, "ration_decisions_total", "policy", "account", "outcome", "allowed", "source", "store")
		r.isCounted(2, "ration_decisions_total", "policy", "user", "outcome", "allowed", "source", "store")
		r.isCounted(1, "ration_decisions_total", "policy", "user", "outcome", "denied", "source", "store")
		r.isCounted(3, "ration_store_call_duration_seconds", "function", "decide")
	})
}

// One enforced token bucket goes by the fast path; everything else does not.
func TestThePathOfARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "simple", 10, "")
		s.install(t, "shadow", 10, `, "mode": "shadow"`)
		s.install(t, "beside", 10, "")
		s.installOn(t, "beside", "off", `["account"]`, bucket(1), `, "mode": "disabled"`)
		s.install(t, "watched", 10, "")
		s.installOn(t, "watched", "watching", `["account"]`, bucket(1), `, "mode": "shadow"`)
		s.installOn(t, "window", "window", `["account"]`, window(10), "")
		s.installOn(t, "slots", "slots", `["account"]`, slots(10), "")
		r := start(t, s)
		for operation, want := range map[string]string{
			"simple": take, "beside": take, "shadow": decideTry, "watched": decideTry, "window": decideTry, "slots": decideTry,
		} {
			d := r.ask(request(operation, "A", 1)).is(true, 9)
			s.sends(t, want)
			if simple := d.Detail == nil; simple != (want == take) {
				t.Errorf("%s: detail %+v", operation, d.Detail)
			}
		}
		withID := request("simple", "A", 1)
		withID.OperationID = "id"
		r.ask(withID).is(true, 8)
		s.sends(t, decideTry)
		peek := request("simple", "A", 1)
		peek.Peek = true
		r.ask(peek).is(true, 8)
		s.sends(t, take)
	})
}

func TestShadowsAreToldApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		s.installOn(t, "op", "watching", `["account"]`, bucket(1), `, "mode": "shadow"`)
		r := start(t, s)
		for i := range 3 {
			r.ask(request("op", "A", 1)).is(true, int64(9-i))
		}
		for outcome, want := range map[string]float64{"shadow_allowed": 1, "shadow_denied": 2, "allowed": 0, "denied": 0} {
			r.isCounted(want, "ration_decisions_total", "policy", "watching", "outcome", outcome, "source", "store")
		}
		r.isCounted(3, "ration_decisions_total", "policy", "op", "outcome", "allowed", "source", "store")
	})
}

func TestSlotsAreHandedOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.installOn(t, "op", "slots", `["account"]`, slots(1), "")
		r := start(t, s)
		d := r.ask(request("op", "A", 1)).is(true, 0)
		slot := d.Detail.Parts[0].Slot
		if slot.ID == (policy.SlotID{}) {
			t.Error("no slot was handed out")
		}
		r.ask(request("op", "A", 1)).is(false, 0)
		if released, err := s.ReleaseSlot(t.Context(), slot.ID, s.nowMicros()); !released || err != nil {
			t.Errorf("release: %t, %v", released, err)
		}
		r.ask(request("op", "A", 1)).is(true, 0)
	})
}

// A call that has to wait for the disk delays none that has not.
func TestKindsOfClaimsHaveLanesOfTheirOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.installOn(t, "quick", "quick", `["account"]`, window(10), "")
		s.installOn(t, "mixed", "mixed1", `["account"]`, window(10), "")
		s.installOn(t, "mixed", "mixed2", `["account"]`, window(10), `, "durability": "durable"`)
		s.installOn(t, "slots", "slots", `["account"]`, slots(10), "")
		r := start(t, s, func(c *limiter.Config) { c.DecisionTimeout = time.Minute })
		for _, durable := range []string{"mixed", "slots"} {
			resume := s.stop()
			slow := r.ask(request(durable, "A", 1))
			synctest.Wait()
			alsoSlow := r.ask(request("mixed", "B", 1))
			synctest.Wait()
			if sent := s.calls(); len(sent) != 1 {
				t.Errorf("%s: %d calls, want the second to wait in its lane", durable, len(sent))
			}
			quick := r.ask(request("quick", "A", 1))
			synctest.Wait()
			if sent := s.calls(); len(sent) != 1 {
				t.Errorf("%s: a fast claim waits for it", durable)
			}
			resume()
			for _, p := range []*pending{slow, alsoSlow, quick} {
				if got := <-p.result; got.Err != nil || !got.Decision.Allowed {
					t.Errorf("%s: %+v", durable, got)
				}
			}
			s.calls()
		}
	})
}

func TestAnAccountsClaimsMeetInOneLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.installBoth(t, 1000, 1000)
		r := start(t, s, func(c *limiter.Config) { c.Lanes, c.BatchAsksMax, c.DecisionTimeout = 4, 1024, time.Minute })
		resume := s.stop()
		var waiting []*pending
		for i := range 40 {
			waiting = append(waiting, r.ask(by(fmt.Sprint("account", i%4), fmt.Sprint("user", i), 1)))
			synctest.Wait()
		}
		resume()
		for _, p := range waiting {
			<-p.result
		}
		lanes := map[string]int{} // calls that an account was in: its lane's first, and those that gathered behind it
		for _, c := range s.calls() {
			accounts := map[policy.Key]bool{}
			for _, claim := range c.claims.Claims {
				accounts[claim.Checks[0].Key] = true
			}
			for key := range accounts {
				lanes[string(key[:])]++
			}
		}
		for key, calls := range lanes {
			if calls > 2 {
				t.Errorf("account %x is in %d calls, want it in one lane's two", key, calls)
			}
		}
	})
}

// Claims are decided in the order of their arrival, each as if alone.
func TestClaimsGatherInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.installBoth(t, 5, 100)
		r := start(t, s, func(c *limiter.Config) { c.BatchAsksMax = 1024 })
		resume := s.stop()
		first := r.ask(by("first", "U", 1))
		synctest.Wait()
		var waiting []*pending
		for _, cost := range []int64{2, 4, 1, 3, 2} {
			waiting = append(waiting, r.ask(by("A", "U", cost)))
			synctest.Wait()
		}
		resume()
		first.is(true, 4)
		for i, want := range []struct {
			allowed   bool
			remaining int64
		}{{true, 3}, {false, 3}, {true, 2}, {false, 2}, {true, 0}} {
			waiting[i].is(want.allowed, want.remaining)
		}
		sent := s.calls()
		if len(sent) != 2 || len(sent[1].claims.Claims) != 5 {
			t.Fatalf("got %d calls, want one alone and one of five claims", len(sent))
		}
		var costs []int64
		for _, claim := range sent[1].claims.Claims {
			costs = append(costs, claim.Checks[0].Cost)
		}
		if !slices.Equal(costs, []int64{2, 4, 1, 3, 2}) {
			t.Errorf("sent in order %v", costs)
		}
		if sent[1].claims.RetentionMicros != retention.Microseconds() {
			t.Errorf("outcomes are kept for %d µs", sent[1].claims.RetentionMicros)
		}
	})
}

func TestAPolicyChangeUnderWayIsClaimedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.installBoth(t, 10, 10)
		r := start(t, s)
		changed := s.installOn(t, "op", "account", `["account"]`, bucket(5), "")
		results := make([]policy.Result, 2)
		r.DecideBatch(t.Context(), []*policy.Request{by("A", "U", 1), by("A", "U", 1)}, results)
		for i, got := range results {
			if got.Err != nil || got.Decision.Policy != changed || got.Decision.Remaining != int64(4-i) {
				t.Errorf("request %d: %+v", i, got)
			}
		}
		s.sends(t, decideTry, decideTry)
	})
}

// A required version names its policy where several match.
func TestARequiredVersionOfOneOfSeveral(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.installBoth(t, 10, 10)
		r := start(t, s)
		r.ask(requiring(1, "", by("A", "U", 1))).fails(policy.ReasonPolicyUnnamed)
		r.ask(requiring(2, "user", by("A", "U", 1))).fails(policy.ReasonPolicyBehind)
		s.sends(t)
		r.ask(requiring(1, "user", by("A", "U", 1))).is(true, 9)
	})
}

func TestAFullGeneralQueueAnswersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.installBoth(t, 10, 10)
		r := start(t, s, func(c *limiter.Config) { c.QueueMax = 2 })
		resume := s.stop()
		waiting := []*pending{r.ask(by("A", "U", 1))}
		synctest.Wait()
		for range 2 {
			waiting = append(waiting, r.ask(by("A", "U", 1)))
			synctest.Wait()
		}
		r.ask(by("A", "U", 1)).fails(policy.ReasonOverloaded)
		resume()
		for i, p := range waiting {
			p.is(true, int64(9-i))
		}
	})
}

func TestWhoLeavesAGeneralLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.installBoth(t, 10, 10)
		r := start(t, s)
		resume := s.stop()
		onTheWay := r.ask(within(10, by("A", "U", 1)))
		synctest.Wait()
		waiting := r.ask(within(10, by("A", "U", 1)))
		if err := onTheWay.fails(policy.ReasonStoreUnavailable); !isUnsure(err) {
			t.Errorf("got %v, want it to be uncertain", err)
		}
		if err := waiting.fails(policy.ReasonStoreUnavailable); isUnsure(err) {
			t.Error("what was not sent is uncertain")
		}
		resume()
		synctest.Wait()
		r.ask(by("A", "U", 1)).is(true, 8)
		r.isCounted(1, "ration_uncertain_total", "policy", "account")
		r.isCounted(1, "ration_uncertain_total", "policy", "user")
		r.isCounted(1, "ration_late_results_total", "outcome", "allowed")
	})
}
