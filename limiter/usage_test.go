package limiter_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/rationhq/ration/policy"
)

// caller gives a question about an account's limits.
func caller(account string) *policy.Request {
	var r policy.Request
	r.Values[policy.Account] = account
	return &r
}

func TestUsageTellsAllAndTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		account, user := s.installBoth(t, 10, 10)
		slots := s.installOn(t, "export", "slots", `["account"]`, slots(2), `, "mode": "shadow"`)
		r := start(t, s)
		r.ask(by("A", "U", 3)).is(true, 7)
		s.calls()
		for range 2 {
			usage, err := r.Usage(t.Context(), caller("A"))
			if err != nil {
				t.Fatal(err)
			}
			if usage.AtMicros != s.nowMicros() || len(usage.Missing) != 1 || usage.Missing[0].Policy != user {
				t.Errorf("got %+v, want it now, without the user's", usage)
			}
			if p := usage.Parts; len(p) != 2 || p[0].Policy != account || p[0].Remaining != 7 || p[1].Policy != slots || p[1].Remaining != 2 {
				t.Errorf("got parts %+v", usage.Parts)
			}
		}
		sent := s.calls()
		if len(sent) != 2 || !sent[0].claims.Claims[0].Peek {
			t.Errorf("calls %+v, want a peek each time", sent)
		}
		r.isCounted(1+1, "ration_decisions_total") // of two policies, before
	})
}

func TestUsageOfNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		r := start(t, s)
		usage, err := r.Usage(t.Context(), caller("A"))
		if err != nil || len(usage.Parts) != 0 || usage.AtMicros != 0 {
			t.Errorf("got %+v, %v", usage, err)
		}
		s.sends(t)
	})
}

func TestUsageMeetsAPolicyChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		changed := s.install(t, "op", 20, "")
		usage, err := r.Usage(t.Context(), caller("A"))
		if err != nil || len(usage.Parts) != 1 || usage.Parts[0].Policy != changed {
			t.Errorf("got %+v, %v", usage, err)
		}
	})
}

func TestUsageWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		s.breaks(func(sentCall) error { return fault(policy.StoreUnreachable) })
		_, err := r.Usage(t.Context(), caller("A"))
		hasReason(t, err, policy.ReasonStoreUnavailable)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = r.Usage(ctx, caller("A"))
		hasReason(t, err, policy.ReasonStoreUnavailable)
		s.sends(t, decideTry)
	})
}
