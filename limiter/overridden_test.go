package limiter_test

import (
	"testing"
	"testing/synctest"

	"github.com/rationhq/ration/policy"
)

// override gives an account an override of a policy.
func (s *store) override(of *policy.Installed, account string, override policy.Override) {
	var values [policy.AttributeCount]string
	values[policy.Account] = account
	if s.overrides == nil {
		s.overrides = make(map[string]map[policy.Key]policy.Override)
	}
	if s.overrides[of.ID] == nil {
		s.overrides[of.ID] = make(map[policy.Key]policy.Override)
	}
	if override.Limited != nil {
		override.Key = policy.KeyOf(override.Limited.ID, of.Spec, &values)
		limited := *override.Limited
		limited.ID = of.ID
		override.Limited = &limited
	}
	s.overrides[of.ID][policy.KeyOf(of.ID, of.Spec, &values)] = override
}

// withOverrides is a store whose policy op gives account L another limit,
// exempts E and blocks B.
func withOverrides(t *testing.T) (s *store, op *policy.Installed) {
	t.Helper()
	s = newStore()
	op = s.install(t, "op", 10, "")
	s.override(op, "L", policy.Override{Action: policy.OverrideLimit, Limited: s.install(t, "limited", 100, "")})
	s.override(op, "E", policy.Override{Action: policy.OverrideExempt})
	s.override(op, "B", policy.Override{Action: policy.OverrideBlocked})
	return s, op
}

func TestOverridesAreDecidedByTheirAction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, op := withOverrides(t)
		r := start(t, s)
		if d := r.ask(request("op", "L", 30)).is(true, 70); d.Policy.ID != "op" || d.Policy.Spec.Limit.Capacity != 100 {
			t.Errorf("another limit: decided by %+v", d.Policy)
		}
		r.ask(request("op", "N", 3)).is(true, 7)
		s.sends(t, take, take)
		exempt := r.ask(request("op", "E", 11)).is(true, 10)
		if exempt.Policy.ID != op.ID || exempt.Source != policy.FromPolicy {
			t.Errorf("exempt: %+v", exempt)
		}
		blocked := r.ask(request("op", "B", 1)).is(false, 0)
		if blocked.Policy.ID != op.ID || blocked.Source != policy.FromPolicy || blocked.RetryAfterMicros != policy.Never {
			t.Errorf("blocked: %+v", blocked)
		}
		peek := request("op", "B", 1)
		peek.Peek = true
		r.ask(peek).is(false, 0)
		r.ask(requiring(2, "", request("op", "B", 1))).fails(policy.ReasonPolicyBehind)
		s.sends(t)
		r.isCounted(2, "ration_decisions_total", "policy", "op", "outcome", "allowed", "source", "store")
		r.isCounted(1, "ration_decisions_total", "policy", "op", "outcome", "allowed", "source", "policy")
		r.isCounted(2, "ration_decisions_total", "policy", "op", "outcome", "denied", "source", "policy")
	})
}

// Beside other policies an exempt key passes those alone, and a blocked one is
// denied without any of them being charged.
func TestOverridesBesideOtherPolicies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := withOverrides(t)
		s.installOn(t, "op", "beside", `["account"]`, bucket(5), "")
		r := start(t, s)
		if d := r.ask(request("op", "E", 1)).is(true, 4); d.Policy.ID != "beside" {
			t.Errorf("exempt: decided by %s", d.Policy.ID)
		}
		r.ask(request("op", "B", 1)).is(false, 0)
		r.isCounted(1, "ration_decisions_total", "policy", "op", "outcome", "allowed", "source", "policy")
		usage, err := r.Usage(t.Context(), caller("B"))
		if err != nil {
			t.Fatal(err)
		}
		if p := usage.Parts; len(p) != 3 || p[0].Policy.ID != "beside" || p[0].Remaining != 5 || p[2].Policy.ID != "op" || p[2].Allowed ||
			p[2].Remaining != 0 || p[2].RetryAfterMicros != policy.Never {
			t.Errorf("what a blocked account has left: %+v", p)
		}
	})
}

// A shadow that blocks a key denies nothing and is counted all the same.
func TestAShadowBlocksNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.installOn(t, "op", "enforced", `["account"]`, bucket(5), "")
		tried := s.installOn(t, "op", "tried", `["account"]`, bucket(5), `, "mode": "shadow"`)
		s.override(tried, "B", policy.Override{Action: policy.OverrideBlocked})
		r := start(t, s)
		if d := r.ask(request("op", "B", 1)).is(true, 4); d.Policy.ID != "enforced" {
			t.Errorf("decided by %s", d.Policy.ID)
		}
		r.isCounted(1, "ration_decisions_total", "policy", "tried", "outcome", "shadow_denied", "source", "policy")
	})
}

// What was decided under an operation id before its key was blocked is told
// again; a new one is denied.
func TestABlockedKeyRepeatsWhatWasDecided(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		op := s.install(t, "op", 10, "")
		r := start(t, s)
		identified := func(operationID string) *policy.Request {
			asked := request("op", "A", 4)
			asked.OperationID = operationID
			return asked
		}
		r.ask(identified("before")).is(true, 6)
		s.override(op, "A", policy.Override{Action: policy.OverrideBlocked})
		s.install(t, "other", 1, "") // a change, so that it is loaded
		r.Refresh()
		synctest.Wait()
		r.ask(identified("before")).is(true, 6)
		if d := r.ask(identified("after")).is(false, 0); d.RetryAfterMicros != policy.Never {
			t.Errorf("blocked: %+v", d)
		}
	})
}
