package limiter_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/policy"
)

// under gives a request an operation id.
func under(id string, r *policy.Request) *policy.Request {
	r.OperationID = id
	return r
}

func TestAnOutcomeIsReplayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 3, "")
		r := start(t, s)
		for i := range 3 {
			d := r.ask(under("first", request("op", "A", 2))).is(true, 1)
			if replayed := d.Source == policy.FromReplay; replayed != (i > 0) || d.Detail.OperationID != "first" {
				t.Errorf("answer %d: %+v, %+v", i, d, d.Detail)
			}
		}
		for range 2 {
			r.ask(under("second", request("op", "A", 2))).is(false, 1) // a denial is final for its id
			<-time.After(10 * time.Second)
		}
		r.ask(under("first", request("op", "B", 2))).is(true, 1) // an id means nothing to another account
		r.ask(under("first", request("op", "A", 1))).fails(policy.ReasonOperationReused)
		r.isCounted(2, "ration_decisions_total", "policy", "op", "outcome", "allowed", "source", "replay")
		r.isCounted(1, "ration_decisions_total", "policy", "op", "outcome", "denied", "source", "replay")
		r.isCounted(2, "ration_decisions_total", "policy", "op", "outcome", "allowed", "source", "store")
		if got := r.counted("ration_store_errors_total") + r.counted("ration_uncertain_total"); got != 0 {
			t.Errorf("%v count as errors", got)
		}
	})
}

// What the policies alone would answer is asked of the store first, when
// there is an operation id: the policies may have changed since it was decided.
func TestAStoredOutcomeComesBeforeWhatThePoliciesSay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		s.install(t, "off", 10, `, "mode": "disabled"`)
		r := start(t, s)
		for i, c := range []struct {
			request *policy.Request
			reason  policy.Reason
		}{
			{request("nothing", "A", 1), policy.ReasonNoPolicy},
			{request("op", "A", 1001), policy.ReasonCostNotAllowed},
			{requiring(7, "", request("op", "A", 1)), policy.ReasonPolicyBehind},
		} {
			c.request.OperationID = "unknown"
			r.ask(c.request).fails(c.reason)
			if sent := s.calls(); len(sent) != 1 || len(sent[0].claims.Claims[0].Checks) != 0 {
				t.Errorf("case %d: calls %+v, want a look-up", i, sent)
			}
		}
		if d := r.ask(under("unknown", request("off", "A", 1))).is(true, 10); d.Source != policy.FromPolicy {
			t.Errorf("got %+v", d)
		}
		s.sends(t, decideTry)
		r.isCounted(1, "ration_decisions_total", "policy", "off", "outcome", "allowed", "source", "policy")

		decided := s.installBody(t, "op", `{"match": {"operations": ["op"]}, "per": ["account"], "limit": `+bucket(20)+`}`)
		also := func(capacity int) {
			s.installBody(t, "also", `{"match": {"operations": ["op"]}, "per": ["account"], "limit": `+bucket(capacity)+`}`)
		}
		also(30)
		r.Refresh()
		synctest.Wait()
		r.ask(under("id", request("op", "A", 1))).is(true, 9)
		off := s.install(t, "op", 20, `, "mode": "disabled"`)
		also(40)
		r.Refresh()
		synctest.Wait()
		s.found()
		d := r.ask(under("id", request("op", "A", 1))).is(true, 9)
		if d.Policy != decided || d.Source != policy.FromReplay {
			t.Errorf("decided by version %d, by %s; want the version before %d", d.Policy.Version, d.Source, off.Version)
		}
		if finds := s.found(); finds != 1 {
			t.Errorf("the store was asked %d times for the two versions that are not in force", finds)
		}
		r.isCounted(1, "ration_decisions_total", "policy", "op", "outcome", "allowed", "source", "replay")
	})
}

// A version that the store cannot tell is its own request's failure.
func TestAReplayOfAVersionThatIsNotFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		r.ask(under("id", request("op", "A", 1))).is(true, 9)
		s.install(t, "op", 20, "")
		r.Refresh()
		synctest.Wait()
		s.versions = nil
		results := make([]policy.Result, 2)
		r.DecideBatch(t.Context(), []*policy.Request{under("id", request("op", "A", 1)), request("op", "A", 1)}, results)
		hasReason(t, results[0].Err, policy.ReasonNotFound)
		if results[1].Err != nil || results[1].Decision.Remaining != 8 {
			t.Errorf("its neighbour: %+v", results[1])
		}
	})
}

// The second of two equal ids in one batch is told what the first is; the same
// id of another request goes with the next call, and is reused.
func TestDuplicatesInOneBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		results := make([]policy.Result, 5)
		r.DecideBatch(t.Context(), []*policy.Request{
			under("id", request("op", "A", 2)), under("id", request("op", "A", 2)), under("id", request("op", "A", 3)),
			under("other", request("op", "A", 1)), under("id", request("op", "B", 1)),
		}, results)
		for _, want := range []struct {
			result    int
			source    policy.Source
			remaining int64
		}{{0, policy.FromStore, 8}, {1, policy.FromReplay, 8}, {3, policy.FromStore, 7}, {4, policy.FromStore, 9}} {
			if got := results[want.result]; got.Err != nil || got.Decision.Source != want.source || got.Decision.Remaining != want.remaining {
				t.Errorf("request %d: %+v, want it from %s with %d remaining", want.result, got, want.source, want.remaining)
			}
		}
		hasReason(t, results[2].Err, policy.ReasonOperationReused)
		var sizes []int
		for _, c := range s.calls() {
			seen := map[policy.Key]bool{}
			for _, claim := range c.claims.Claims {
				if seen[claim.Operation] {
					t.Error("an operation is twice in a call")
				}
				seen[claim.Operation] = true
			}
			sizes = append(sizes, len(c.claims.Claims))
		}
		if !slices.Equal(sizes, []int{3, 1}) {
			t.Errorf("calls of %v claims, want 3, 1", sizes)
		}
	})
}

// However many repeat a request at once, they cost one call, whatever comes of
// it, and a look-up where no policy matches.
func TestACrowdOfDuplicatesIsOneClaim(t *testing.T) {
	t.Parallel()
	const crowd = 200
	for name, c := range map[string]struct {
		operation string
		becomes   policy.ClaimStatus
		reason    policy.Reason // "": one is decided, all others are replays
	}{
		"decided":     {"op", policy.ClaimDecided, ""},
		"held":        {"op", policy.ClaimHeld, policy.ReasonStoreUnavailable},
		"reused":      {"op", policy.ClaimReused, policy.ReasonOperationReused},
		"in progress": {"op", policy.ClaimInProgress, policy.ReasonOperationInProgress},
		"unknown":     {"nothing", policy.ClaimDecided, policy.ReasonNoPolicy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				s.install(t, "op", 10, "")
				s.install(t, "other", 10, "")
				r := start(t, s, func(c *limiter.Config) { c.QueueMax = 2 * crowd })
				s.makes(func(sentCall, *policy.Claim) policy.ClaimStatus { return c.becomes })
				resume := s.stop()
				first := r.ask(under("first", request("other", "A", 1)))
				synctest.Wait()
				var waiting []*pending
				for range crowd {
					waiting = append(waiting, r.ask(under("id", request(c.operation, "A", 1))))
				}
				synctest.Wait()
				resume()
				<-first.result
				sources := map[policy.Source]int{}
				for _, p := range waiting {
					got := <-p.result
					if c.reason != "" {
						hasReason(t, got.Err, c.reason)
					} else if got.Err != nil || got.Decision.Remaining != 9 {
						t.Errorf("got %+v", got)
					}
					sources[got.Decision.Source]++
				}
				if c.reason == "" && (sources[policy.FromStore] != 1 || sources[policy.FromReplay] != crowd-1) {
					t.Errorf("%d are decided and %d replayed, want one and the others", sources[policy.FromStore], sources[policy.FromReplay])
				}
				sent := s.calls()
				if c.becomes != policy.ClaimInProgress && len(sent) != 2 {
					t.Errorf("%d calls, want one for the first and one for the crowd", len(sent))
				}
				for _, call := range sent {
					if len(call.claims.Claims) > 2 {
						t.Errorf("a call of %d claims", len(call.claims.Claims))
					}
				}
			})
		})
	}
}

// busy lets the store say that another call decides operations, until it is
// told otherwise.
func (s *store) busy() (end func()) {
	s.makes(func(_ sentCall, claim *policy.Claim) policy.ClaimStatus {
		if claim.Operation != (policy.Key{}) {
			return policy.ClaimInProgress
		}
		return policy.ClaimDecided
	})
	return func() {
		s.makes(func(sentCall, *policy.Claim) policy.ClaimStatus { return policy.ClaimDecided })
	}
}

func TestADuplicateWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		r.ask(under("id", request("op", "A", 1))).is(true, 9)
		end := s.busy()
		begun := time.Now()
		duplicate := r.ask(under("id", request("op", "A", 1)))
		synctest.Wait()
		s.makes(func(_ sentCall, claim *policy.Claim) policy.ClaimStatus {
			if claim.Operation == policy.OperationKeyOf("", "A", "id") {
				return policy.ClaimInProgress
			}
			return policy.ClaimDecided
		})
		r.ask(under("other", request("op", "A", 1))).is(true, 8) // the lane goes on meanwhile
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("its neighbour waited for %s", waited)
		}
		<-time.After(12 * time.Millisecond)
		end()
		if d := duplicate.is(true, 9); d.Source != policy.FromReplay {
			t.Errorf("got %+v", d)
		}
		if waited := time.Since(begun); waited != 15*time.Millisecond {
			t.Errorf("it waited for %s, want the next try after the end", waited)
		}
	})
}

func TestADuplicateDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		s.busy()
		for _, c := range []struct {
			millis int
			want   time.Duration
		}{{0, 40 * time.Millisecond}, {12, 12 * time.Millisecond}} {
			begun := time.Now()
			r.ask(within(c.millis, under("id", request("op", "A", 1)))).fails(policy.ReasonOperationInProgress)
			if waited := time.Since(begun); waited != c.want {
				t.Errorf("it waited for %s, want %s", waited, c.want)
			}
		}
		<-time.After(time.Second)
		if asked := len(s.calls()); asked != 9+3 {
			t.Errorf("asked %d times, want every 5 ms from the first on", asked)
		}
		if got := r.counted("ration_store_errors_total") + r.counted("ration_uncertain_total"); got != 0 {
			t.Errorf("%v count as errors", got)
		}
	})
}

// Who leaves while he is parked is not charged, and not asked for any more.
func TestWhoLeavesWhileParked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		end := s.busy()
		ctx, cancel := context.WithCancel(t.Context())
		alone := r.askUnder(ctx, under("id", request("op", "A", 1)))
		results := make([]policy.Result, 2)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.DecideBatch(ctx, []*policy.Request{under("id", request("op", "A", 1)), under("id2", request("op", "A", 1))}, results)
		}()
		synctest.Wait()
		s.calls()
		cancel()
		alone.fails(policy.ReasonOperationInProgress)
		<-ended
		for _, got := range results {
			hasReason(t, got.Err, policy.ReasonOperationInProgress)
		}
		end()
		<-time.After(time.Second)
		if sent := s.calls(); len(sent) != 0 {
			t.Errorf("they were asked for all the same: %+v", sent)
		}
		r.ask(under("id", request("op", "A", 1))).is(true, 9)
	})
}

// What is parked takes room in the queue, and where there is none it is
// answered at once.
func TestParkingIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s, func(c *limiter.Config) { c.QueueMax = 2 })
		s.busy()
		resume := s.stop()
		ids := []string{"a", "b", "c"}
		var waiting []*pending
		for _, id := range ids {
			waiting = append(waiting, r.ask(under(id, request("op", "A", 1))))
			synctest.Wait()
		}
		resume()
		synctest.Wait()
		begun := time.Now()
		r.ask(under("d", request("op", "A", 1))).fails(policy.ReasonOverloaded)
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("it waited for %s", waited)
		}
		for _, p := range waiting {
			p.fails(policy.ReasonOperationInProgress)
		}
	})
}

// A limiter that stops answers what is parked before it ends.
func TestStoppingWhileParked(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			s.install(t, "op", 10, "")
			r := start(t, s)
			end := s.busy()
			parked := r.ask(under("id", request("op", "A", 1)))
			synctest.Wait()
			if answered {
				end()
			}
			r.stop()
			if answered {
				parked.is(true, 9)
			} else {
				parked.fails(policy.ReasonOperationInProgress)
			}
			if s.open != 0 {
				t.Errorf("%d sessions are open", s.open)
			}
		})
	}
}
