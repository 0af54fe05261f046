package limiter_test

import (
	"testing"
	"testing/synctest"

	"github.com/rationhq/ration/policy"
)

func TestExplainTellsBalancesAndTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		op := s.install(t, "op", 10, "")
		s.install(t, "other", 10, "")
		r := start(t, s)
		r.ask(request("op", "A", 8)).is(true, 2)
		s.calls()
		for _, c := range []struct {
			cost    int64
			allowed bool
		}{{2, true}, {3, false}} {
			explanation, err := r.Explain(t.Context(), request("op", "A", c.cost), "")
			if err != nil {
				t.Fatal(err)
			}
			if explanation.Allowed != c.allowed || explanation.AtMicros != s.nowMicros() || len(explanation.Others) != 1 {
				t.Errorf("got %+v", explanation)
			}
			if e := explanation.Matching; len(e) != 1 || e[0].Policy != op || e[0].Cost != c.cost || e[0].Part == nil || e[0].Part.Remaining != 2 {
				t.Errorf("got %+v", explanation.Matching)
			}
		}
		if sent := s.calls(); len(sent) != 2 || !sent[0].claims.Claims[0].Peek {
			t.Errorf("calls %+v, want a peek each time", sent)
		}
		r.isCounted(1, "ration_decisions_total") // before
	})
}

func TestExplainOfARefusalAsksNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		explanation, err := r.Explain(t.Context(), request("unknown", "A", 1), "")
		if err != nil || explanation.Refusal == nil || explanation.Allowed || len(explanation.Others) != 1 {
			t.Errorf("got %+v, %v", explanation, err)
		}
		s.sends(t)
		s.breaks(func(sentCall) error { return fault(policy.StoreUnreachable) })
		_, err = r.Explain(t.Context(), request("op", "A", 1), "")
		hasReason(t, err, policy.ReasonStoreUnavailable)
	})
}

func TestReviewKnowsThePoliciesInForce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		op := s.install(t, "op", 10, "")
		r := start(t, s)
		if warnings := r.Review("op", op.Spec); len(warnings) != 0 {
			t.Errorf("a policy is in its own way: %+v", warnings)
		}
		if warnings := r.Review("copy", op.Spec); len(warnings) != 1 || warnings[0].Name != policy.WarnShadowed {
			t.Errorf("got %+v", warnings)
		}
	})
}
