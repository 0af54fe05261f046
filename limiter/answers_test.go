package limiter_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rationhq/ration/policy"
)

// What the policies alone answer never reaches the store, alone or in a batch.
func TestWhatIsAnsweredWithoutTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		s.install(t, "fixed", 10, `, "costs": {"default": 2}`)
		s.install(t, "login", 10, `, "onMissing": "reject"`)
		s.install(t, "first", 10, `, "costs": {"default": 1}`)
		s.installBody(t, "second", `{"match": {"operations": ["first"]}, "per": [],
			"limit": {"algorithm": "token_bucket", "capacity": 1, "refillTokens": 1, "refillSeconds": 1}}`)
		r := start(t, s)
		withoutAccount := request("login", "", 1)
		withoutAccount.Values[policy.User] = "U"
		cases := []struct {
			request *policy.Request
			reason  policy.Reason
		}{
			{request("nothing", "A", 1), policy.ReasonNoPolicy},
			{request("fixed", "A", 3), policy.ReasonCostNotAllowed},
			{withoutAccount, policy.ReasonInvalidRequest},
			{requiring(1, "", request("first", "A", 1)), policy.ReasonPolicyUnnamed},
		}
		var requests []*policy.Request
		for _, c := range cases {
			r.ask(c.request).fails(c.reason)
			requests = append(requests, c.request)
		}
		s.sends(t)
		results := make([]policy.Result, len(requests)+1)
		r.DecideBatch(t.Context(), append(requests, request("op", "A", 1)), results)
		for i, c := range cases {
			hasReason(t, results[i].Err, c.reason)
		}
		if got := results[len(cases)]; got.Err != nil || got.Decision.Remaining != 9 {
			t.Errorf("the good one among bad ones: %+v", got)
		}
		s.sends(t, take)
	})
}

func TestADisabledPolicyAllows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		off := s.install(t, "off", 10, `, "mode": "disabled"`)
		r := start(t, s)
		want := policy.Decision{Policy: off, Allowed: true, Remaining: 10, Source: policy.FromPolicy}
		if got := r.ask(request("off", "A", 1)).is(true, 10); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		for account, got := range r.together("off", "A", "B") {
			if got.Err != nil || got.Decision != want {
				t.Errorf("%s: got %+v, want %+v", account, got, want)
			}
		}
		s.sends(t)
		r.isCounted(3, "ration_decisions_total", "policy", "off", "outcome", "allowed", "source", "policy")
	})
}

func TestACostAboveTheCapacityNeverPasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		if d := r.ask(request("op", "A", 11)).is(false, 10); d.RetryAfterMicros != policy.Never {
			t.Errorf("it is told to wait %d µs", d.RetryAfterMicros)
		}
		peek := request("op", "A", 11)
		peek.Peek = true
		if d := r.ask(peek).is(false, 10); d.RetryAfterMicros != policy.Never {
			t.Errorf("a peek is told to wait %d µs", d.RetryAfterMicros)
		}
	})
}

// requiring gives a request that is only decided under a version.
func requiring(version int, of string, r *policy.Request) *policy.Request {
	r.RequirePolicyVersion, r.PolicyVersion, r.Policy = true, version, of
	return r
}

func TestARequiredVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		s.install(t, "off", 10, `, "mode": "disabled"`)
		r := start(t, s)
		begun := time.Now()
		r.ask(requiring(1, "", request("op", "A", 1))).is(true, 9)
		r.ask(requiring(1, "op", request("op", "A", 1))).is(true, 8)
		for _, asked := range []*policy.Request{
			requiring(2, "", request("op", "A", 1)),
			requiring(2, "op", request("op", "A", 1)),
			requiring(1, "unknown", request("op", "A", 1)),
			requiring(2, "", request("off", "A", 1)),
		} {
			before := s.loaded()
			r.ask(asked).fails(policy.ReasonPolicyBehind)
			if looks := s.loaded() - before; looks != 1 {
				t.Errorf("%d looks at the store's policies, want one", looks)
			}
		}
		r.ask(requiring(1, "off", request("op", "A", 1))).is(true, 7)
		s.install(t, "op", 20, "") // unheard of here
		d := r.ask(requiring(2, "", request("op", "A", 1))).is(true, 6)
		if d.Policy.Version != 2 {
			t.Errorf("decided under version %d", d.Policy.Version)
		}
		unstated := request("op", "A", 1)
		unstated.PolicyVersion = 9 // believed, not required
		r.ask(unstated).is(true, 5)
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("it took %s", waited)
		}
	})
}

// One request that waits for a newer version holds up no other of its batch.
func TestARequiredVersionOfOneInABatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		policies, r := follow(t, s)
		synctest.Wait()
		resume := make(chan struct{})
		policies.says(func(since int64) (int64, []*policy.Installed, error) {
			<-resume
			return since, nil, nil
		})
		defer close(resume)
		begun := time.Now()
		results := make([]policy.Result, 3)
		r.DecideBatch(t.Context(), []*policy.Request{
			within(20, requiring(2, "", request("op", "A", 1))), within(10, request("op", "B", 1)), within(10, request("op", "A", 1)),
		}, results)
		if waited := time.Since(begun); waited != 20*time.Millisecond {
			t.Errorf("it took %s, want the longest deadline of a batch that waits", waited)
		}
		hasReason(t, results[0].Err, policy.ReasonPolicyBehind)
		for _, i := range []int{1, 2} {
			if results[i].Err != nil || results[i].Decision.Remaining != 9 {
				t.Errorf("request %d: %+v", i, results[i])
			}
		}
	})
}
