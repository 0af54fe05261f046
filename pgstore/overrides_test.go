package pgstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rationhq/ration/policy"
)

// overridePut reads the body of an override for an account.
func (b *bench) overridePut(id, account, body string) policy.OverridePut {
	b.Helper()
	put, err := policy.ParseOverride([]byte(body))
	if err != nil {
		b.Fatal(err)
	}
	put.Author = policy.Author{Actor: "ann", Role: policy.Operator, RequestID: "r1"}
	put.PolicyID, put.Values[policy.Account] = id, account
	return *put
}

// override sets the override of an account.
func (b *bench) override(id, account, body string, atMicros int64) *policy.OverrideRecord {
	b.Helper()
	record, _, _, err := b.store.PutOverrideAt(b.Context(), b.overridePut(id, account, body), epochMicros+atMicros)
	if err != nil {
		b.Fatal(err)
	}
	return record
}

// removeOverride takes the override of an account away.
func (b *bench) removeOverride(id, account string, atMicros int64) error {
	b.Helper()
	removal := policy.OverrideRemoval{Author: policy.Author{Actor: "ann", RequestID: "r2"}, PolicyID: id, Reason: "done"}
	removal.Values[policy.Account] = account
	_, err := b.store.RemoveOverrideAt(b.Context(), removal, epochMicros+atMicros)
	return err
}

// limitOf is the body of an override that has another figure of a shape.
func (b *bench) limitOf(s shape, capacity int64) string {
	b.Helper()
	s.capacity = capacity
	limit := s.change(b).Spec.Limit
	return fmt.Sprintf(`{"action": "limit", "reason": "why", "limit": %s}`, limit.JSON())
}

// matchedBy matches a request of an account as an instance does that has loaded
// everything.
func (b *bench) matchedBy(account string) *policy.Matched {
	b.Helper()
	generation, all, err := b.store.Load(b.Context(), 0)
	if err != nil {
		b.Fatal(err)
	}
	request := &policy.Request{}
	request.Values[policy.Account], request.Values[policy.Operation] = account, "a"
	matched := new(policy.Matched)
	if err := policy.Compile(generation, all).Match(request, matched); err != nil {
		b.Fatal(err)
	}
	return matched
}

// checkOf is what the one policy that there is asks of an account.
func (b *bench) checkOf(account string, cost int64) policy.Check {
	b.Helper()
	matched := b.matchedBy(account)
	if len(matched.Checks) != 1 {
		b.Fatalf("%s has to pass %+v", account, matched.Checks)
	}
	check := matched.Checks[0]
	check.Cost = cost
	return check
}

// left is what an account has left.
func (b *bench) left(account string, atMicros int64) int64 {
	b.Helper()
	peek := policy.Claim{Peek: true, Checks: []policy.Check{b.checkOf(account, 1)}}
	return b.claim(b.session(), atMicros, peek)[0].Parts[0].Remaining
}

// spend charges an account, and says whether that was allowed.
func (b *bench) spend(account string, cost, atMicros int64) bool {
	b.Helper()
	return b.claim(b.session(), atMicros, claim(b.checkOf(account, cost)))[0].Allowed
}

// What is decided under an override bears the policy's id and version, also
// when it is looked up after the override and that version have gone.
func TestAnOverrideIsShownAsItsPolicy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := shape{capacity: 10}
	b.install("p", 0, s, 0)
	b.install("p", 1, shape{capacity: 12}, 0)
	b.override("p", "A", b.limitOf(s, 20), 0)
	check := b.checkOf("A", 2)
	if check.Policy.ID != "p" || check.Policy.Version != 2 || check.Policy.Spec.Limit.Capacity != 20 {
		t.Fatalf("checked against %+v", check.Policy)
	}
	claim := claim(check)
	claim.Operation, claim.Content = policy.OperationKeyOf("", "A", "op"), policy.Key{1}
	verdict := b.claim(b.session(), second, claim)[0]
	decision, err := verdict.Decision("op", claim.Checks, nil)
	if err != nil || decision.Policy.ID != "p" || decision.Policy.Version != 2 {
		t.Errorf("decided by %+v, %v", decision.Policy, err)
	}
	if err := b.removeOverride("p", "A", second); err != nil {
		t.Fatal(err)
	}
	b.install("p", 2, shape{capacity: 14}, second)
	found, err := b.store.FindOperation(t.Context(), claim.Operation)
	if err != nil || found.Policy.ID != "p" || found.Policy.Version != 2 || found.Policy.Spec.Limit.Capacity != 20 {
		t.Errorf("looked up: %+v, %v", found.Policy, err)
	}
	settled, err := b.store.SettleAt(t.Context(), policy.Settlement{Operation: claim.Operation, ActualCost: 1}, epochMicros+2*second)
	if err != nil || len(settled.Parts) != 1 || settled.Parts[0].Policy != "p" || settled.Parts[0].Applied {
		t.Errorf("settled after it ended: %+v, %v", settled, err)
	}
}

// Overrides follow their policy: each has its new content and version in the
// change's own transaction, and ends with it.
func TestOverridesFollowTheirPolicy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := shape{capacity: 10, tokens: "1", seconds: "10"}
	b.install("p", 0, s, 0)
	b.override("p", "A", b.limitOf(s, 100), 0)
	b.override("p", "E", `{"action": "exempt", "reason": "why"}`, 0)
	b.spend("A", 4, 0)
	put := func(expected int, balances policy.Balances, start policy.Start, atMicros int64) error {
		t.Helper()
		change := shape{capacity: 20, tokens: "1", seconds: "10"}.change(t)
		change.Spec.Description, change.Spec.Costs.Default = fmt.Sprint("after version ", expected), 2
		change.Balances, change.Start = balances, start
		_, _, err := b.store.PutAt(t.Context(), policy.Put{ID: "p", Expected: expected, Change: change, Author: policy.Author{Actor: "ann"}}, epochMicros+atMicros)
		return err
	}
	if err := put(1, policy.Keep, policy.StartNone, second); err != nil {
		t.Fatal(err)
	}
	matched := b.matchedBy("A").Checks[0]
	if matched.Policy.Version != 2 || matched.Policy.Spec.Limit.Capacity != 100 || matched.Cost != 2 {
		t.Errorf("after a change: %+v", matched)
	}
	if got := b.left("A", second); got != 6 {
		t.Errorf("after a change %d are left of the 10 that it began with", got)
	}
	if err := put(2, policy.Reset, policy.StartNone, 2*second); err != nil {
		t.Fatal(err)
	}
	if got := b.left("A", 2*second); got != 100 {
		t.Errorf("after a reset %d are left", got)
	}
	var refused *policy.Error
	err := put(3, policy.Restart, policy.StartFull, 3*second)
	if !errors.As(err, &refused) || refused.Reason != policy.ReasonPolicyInvalid || !strings.Contains(refused.Detail, `"A"`) || strings.Contains(refused.Detail, `"E"`) {
		t.Errorf("a restart: %v", err)
	}
	if err := b.removeOverride("p", "A", 3*second); err != nil {
		t.Fatal(err)
	}
	if err := put(3, policy.Restart, policy.StartFull, 3*second); err != nil {
		t.Errorf("a restart with an exempt key alone: %v", err)
	}
	b.override("p", "A", b.limitOf(s, 50), 3*second)
	removal := policy.Removal{ID: "p", Expected: 4, Author: policy.Author{Actor: "ann"}, Reason: "gone"}
	if err := b.store.DeleteAt(t.Context(), removal, epochMicros+4*second); err != nil {
		t.Fatal(err)
	}
	if n := scalar[int](b, "SELECT count(*) FROM ration.override"); n != 0 {
		t.Errorf("%d overrides outlive their policy", n)
	}
	if n := scalar[int](b, "SELECT count(*) FROM ration.policy WHERE mode <> 'deleted'"); n != 0 {
		t.Errorf("%d policies are left", n)
	}
	if err := put(0, policy.Reset, policy.StartNone, 5*second); err != nil {
		t.Fatal(err)
	}
	if got := b.left("A", 5*second); got != 20 {
		t.Errorf("created anew, the policy has %d left for a key that was overridden", got)
	}
}

// What holds an override's limit is changed with its policy and its override,
// and not by itself.
func TestAnOverridesLimitIsNoPolicyByItself(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := shape{capacity: 10}
	b.install("p", 0, s, 0)
	b.override("p", "A", b.limitOf(s, 20), 0)
	conn := b.service()
	before, generation := b.stored()+b.audits(), b.generation()
	id := scalar[string](b, "SELECT quote_literal(id) FROM ration.policy WHERE parent IS NOT NULL")
	refused(b, conn, "RN005", "begun anew", putSQL(map[string]string{"p_id": id, "p_expected": "1", "p_balances": "'restart'", "p_start": "'full'"}))
	refused(b, conn, "RN005", "deleted", "SELECT ration.delete_policy_v1("+id+", 1, 'ann', 'admin', 'why', 'r1')")
	if after := b.stored() + b.audits(); after != before || b.generation() != generation {
		t.Errorf("refused changes left traces: %s", after)
	}
	if got := b.left("A", 0); got != 10 {
		t.Errorf("the override has %d left", got)
	}
}

// An instance that loads what has changed since its own generation finds
// overrides that are new, and misses those that are gone.
func TestOverridesLoadWithTheirPolicyByGeneration(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := shape{capacity: 10}
	b.install("p", 0, s, 0)
	b.install("other", 0, s, 0)
	known := b.generation()
	loads := func(what string, want ...policy.OverrideAction) {
		t.Helper()
		generation, changed, err := b.store.Load(t.Context(), known)
		if err != nil || generation <= known || len(changed) != 1 || changed[0].ID != "p" || len(changed[0].Overrides) != len(want) {
			t.Fatalf("%s: generation %d after %d, %d policies: %v, want overrides %v", what, generation, known, len(changed), err, want)
		}
		for _, override := range changed[0].Overrides {
			if !strings.Contains(fmt.Sprint(want), override.Action.String()) {
				t.Errorf("%s: %v among %v", what, override.Action, want)
			}
		}
		known = generation
	}
	b.override("p", "A", b.limitOf(s, 20), 0)
	loads("set", policy.OverrideLimit)
	b.override("p", "B", `{"action": "exempt", "reason": "why"}`, 0)
	loads("a second", policy.OverrideLimit, policy.OverrideExempt)
	b.override("p", "A", `{"action": "blocked", "reason": "why"}`, 0)
	loads("replaced", policy.OverrideBlocked, policy.OverrideExempt)
	if err := b.removeOverride("p", "A", 0); err != nil {
		t.Fatal(err)
	}
	loads("removed", policy.OverrideExempt)
	if err := b.removeOverride("p", "B", 0); err != nil {
		t.Fatal(err)
	}
	loads("none left")
	if list, err := b.store.List(t.Context(), "", 10); err != nil || len(list) != 2 {
		t.Errorf("%d policies are listed, %v", len(list), err)
	}
}

func TestImpossibleOverridesAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := shape{capacity: 10, algorithm: policy.FixedWindow, seconds: "60"}
	b.install("p", 0, s, 0)
	before := b.stored() + b.audits()
	generation := b.generation()
	exempt := `{"action": "exempt", "reason": "why"}`
	for name, c := range map[string]struct {
		put    policy.OverridePut
		reason policy.Reason
	}{
		"of no policy":         {b.overridePut("q", "A", exempt), policy.ReasonNotFound},
		"of no key":            {b.overridePut("p", "", exempt), policy.ReasonInvalidRequest},
		"over already":         {b.overridePut("p", "A", `{"action": "exempt", "reason": "why", "expiresAt": "2001-01-01T00:00:00Z"}`), policy.ReasonPolicyInvalid},
		"of another algorithm": {b.overridePut("p", "A", b.limitOf(shape{}, 10)), policy.ReasonPolicyInvalid},
		"of another window":    {b.overridePut("p", "A", b.limitOf(shape{algorithm: policy.FixedWindow, seconds: "61"}, 10)), policy.ReasonPolicyInvalid},
	} {
		var known *policy.Error
		if _, _, _, err := b.store.PutOverrideAt(t.Context(), c.put, epochMicros); !errors.As(err, &known) || known.Reason != c.reason {
			t.Errorf("%s: %v, want %s", name, err, c.reason)
		}
	}
	var known *policy.Error
	if err := b.removeOverride("p", "A", 0); !errors.As(err, &known) || known.Reason != policy.ReasonNotFound {
		t.Errorf("remove what is not there: %v", err)
	}
	if after := b.stored() + b.audits(); after != before || b.generation() != generation {
		t.Errorf("refused overrides left traces: %s", after)
	}
	b.override("p", "A", b.limitOf(shape{algorithm: policy.FixedWindow, seconds: "60.0"}, 5), 0) // 60 as well
	b.exec(`INSERT INTO ration.override (policy, key, attributes, action, actor, reason, created_at, generation)
		SELECT (SELECT number FROM ration.policy WHERE id = 'p'), gen_random_uuid(), '{}', 'exempt', 'test', '', 0, 0 FROM generate_series(2, 1000)`)
	if _, _, _, err := b.store.PutOverrideAt(t.Context(), b.overridePut("p", "B", exempt), epochMicros); !errors.As(err, &known) || known.Reason != policy.ReasonTooManyOverrides {
		t.Errorf("the 1001st override: %v", err)
	}
	b.override("p", "A", exempt, 0) // in the place of one
}
