package policy

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// judged is one policy's part of a verdict in a test, with the policy's mode
// and what the claim asks of it.
type judged struct {
	mode      Mode
	cost      int64
	allowed   bool
	remaining int64
	wait      int64
	reset     int64
}

// verdictOf makes a verdict at the instant 1,000 and the checks that it
// answers. The store's numbers run against the ids.
func verdictOf(status ClaimStatus, allowed bool, parts ...judged) (*Verdict, []Check) {
	verdict := &Verdict{Status: status, Allowed: allowed, AtMicros: 1_000}
	var checks []Check
	for i, part := range parts {
		installed := &Installed{Number: int32(100 - i), ID: string(rune('a' + i)), Version: i + 1, Spec: &Spec{Mode: part.mode}, Mode: part.mode}
		checks = append(checks, Check{Policy: installed, Cost: part.cost})
		verdict.Parts = append(verdict.Parts, Part{
			Policy: installed.Number, Version: installed.Version, Allowed: part.allowed,
			Remaining: part.remaining, RetryAfterMicros: part.wait, ResetAfterMicros: part.reset,
		})
	}
	return verdict, checks
}

// unknown fails a test that looks up what it has at hand.
func unknown(t *testing.T) Find {
	t.Helper()
	return func(number int32, version int) (*Installed, error) {
		t.Errorf("policy %d v%d is looked up", number, version)
		return nil, errors.New("not reached")
	}
}

func TestDecisionShowsTheTightestPolicy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		allowed bool
		parts   []judged
		want    string // the id of the policy on top
	}{
		"the only one":               {true, []judged{{cost: 1, allowed: true, remaining: 5}}, "a"},
		"fewest tokens at one cost":  {true, []judged{{cost: 1, allowed: true, remaining: 5}, {cost: 1, allowed: true, remaining: 4}}, "b"},
		"fewest calls, not tokens":   {true, []judged{{cost: 1, allowed: true, remaining: 4}, {cost: 5, allowed: true, remaining: 19}}, "b"},
		"as many calls: by id":       {true, []judged{{cost: 5, allowed: true, remaining: 19}, {cost: 1, allowed: true, remaining: 3}}, "a"},
		"longest wait":               {false, []judged{{cost: 1, wait: 10}, {cost: 1, wait: 30, remaining: 9}, {cost: 1, wait: 20}}, "b"},
		"as long a wait: by id":      {false, []judged{{cost: 1, wait: 20, remaining: 2}, {cost: 1, wait: 20}}, "a"},
		"never is longest":           {false, []judged{{cost: 1, wait: math.MaxInt64}, {cost: 9, wait: Never, remaining: 8}, {cost: 1, wait: 30}}, "b"},
		"never, even twice":          {false, []judged{{cost: 9, wait: Never}, {cost: 9, wait: Never}}, "a"},
		"denying before nearly none": {false, []judged{{cost: 1, allowed: true}, {cost: 1, wait: 1, remaining: 7}}, "b"},
		"shadow never on top": {true, []judged{
			{mode: Shadow, cost: 1, wait: 500}, {cost: 1, allowed: true, remaining: 5}, {mode: Shadow, cost: 9, wait: Never},
		}, "b"},
		"shadow not on top of a denial": {false, []judged{{mode: Shadow, cost: 9, wait: Never}, {cost: 1, wait: 1}}, "b"},
		"shadow alone, allowing":        {true, []judged{{mode: Shadow, cost: 1, allowed: true, remaining: 9}, {mode: Shadow, cost: 5, allowed: true, remaining: 10}}, "b"},
		"shadow alone, denying":         {true, []judged{{mode: Shadow, cost: 1, allowed: true}, {mode: Shadow, cost: 1, wait: 7, remaining: 3}}, "b"},
	} {
		for i := range test.parts {
			test.parts[i].reset = int64(i+1) * 100
		}
		verdict, checks := verdictOf(ClaimDecided, test.allowed, test.parts...)
		decision, err := verdict.Decision("op-1", checks, unknown(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		top := slices.IndexFunc(checks, func(c Check) bool { return c.Policy.ID == test.want })
		want := Decision{
			Policy: checks[top].Policy, Allowed: test.allowed, Remaining: test.parts[top].remaining,
			AtMicros: 1_000, ResetAfterMicros: int64(top+1) * 100, Source: FromStore,
			Detail: &Detail{OperationID: "op-1"},
		}
		if !test.allowed {
			want.RetryAfterMicros = test.parts[top].wait
		}
		for i, part := range test.parts {
			want.Detail.Parts = append(want.Detail.Parts, DecisionPart{
				Policy: checks[i].Policy, Allowed: part.allowed, Remaining: part.remaining, RetryAfterMicros: part.wait, ResetAfterMicros: part.reset,
			})
		}
		if diff := gocmp.Diff(want, decision, gocmp.Comparer(func(a, b *Installed) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDecisionOfAReplayLooksUpWhatIsNotInForce(t *testing.T) {
	t.Parallel()
	// First answered: 19 tokens left at 5 a call of the one, 4 at 1 of the
	// other. The repetition is matched by a newer version of the first, which
	// charges 1, and by a policy that had no part in it.
	verdict, first := verdictOf(ClaimReplayed, true, judged{cost: 5, allowed: true, remaining: 19}, judged{cost: 1, allowed: true, remaining: 4})
	verdict.Parts[0].Cost, verdict.Parts[1].Cost = 5, 1
	verdict.Parts[1].Slot = Slot{ID: SlotID{7}, ExpiresAtMicros: 9}
	newer := *first[0].Policy
	newer.Version = 8
	first[1].Cost = 1000 // the operation has another price now
	now := []Check{{Policy: &newer, Cost: 1}, {Policy: &Installed{Number: 7, ID: "aa", Version: 1}, Cost: 1}, first[1]}
	for name, checks := range map[string][]Check{"repeated": now, "looked up": nil} {
		var asked []int32
		decision, err := verdict.Decision("", checks, func(number int32, version int) (*Installed, error) {
			asked = append(asked, number)
			for _, check := range first {
				if check.Policy.Number == number && check.Policy.Version == version {
					return check.Policy, nil
				}
			}
			return nil, errors.New("unknown version")
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if decision.Policy != first[0].Policy || decision.Source != FromReplay || decision.Remaining != 19 {
			t.Errorf("%s: got %s v%d with %d left from %s, want the first version of a", name,
				decision.Policy.ID, decision.Policy.Version, decision.Remaining, decision.Source)
		}
		if parts := decision.Detail.Parts; parts[1].Policy != first[1].Policy || parts[1].Slot != verdict.Parts[1].Slot {
			t.Errorf("%s: got second part %+v", name, parts[1])
		}
		if want := 2 - min(1, len(checks)); len(asked) != want {
			t.Errorf("%s: looked up %v, want %d", name, asked, want)
		}
	}
	lost := errors.New("the store is down")
	if _, err := verdict.Decision("", nil, func(int32, int) (*Installed, error) { return nil, lost }); !errors.Is(err, lost) {
		t.Errorf("got error %v, want that of the look-up", err)
	}
}

func TestDecisionWantsParts(t *testing.T) {
	t.Parallel()
	_, err := (&Verdict{Status: ClaimDecided, Allowed: true}).Decision("", nil, unknown(t))
	if failure, ok := errors.AsType[*Error](err); !ok || failure.Code != CodeInternal {
		t.Errorf("got error %v, want an internal one", err)
	}
}

// TestTightestAgreesWithTheRule sorts by the rule as it is written.
func TestTightestAgreesWithTheRule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		allowed, enforced := true, false
		parts := make([]judged, rapid.IntRange(1, 6).Draw(t, "parts"))
		for i := range parts {
			part := &parts[i]
			part.mode = rapid.SampledFrom([]Mode{Enforce, Shadow}).Draw(t, "mode")
			part.cost = rapid.Int64Range(1, 3).Draw(t, "cost")
			part.remaining = rapid.Int64Range(0, 9).Draw(t, "remaining")
			if part.allowed = rapid.Bool().Draw(t, "allowed"); !part.allowed {
				part.wait = rapid.SampledFrom([]int64{Never, 1, 2, math.MaxInt64}).Draw(t, "wait")
			}
			enforced = enforced || part.mode == Enforce
			allowed = allowed && (part.allowed || part.mode == Shadow)
		}
		eligible := make([]int, 0, len(parts))
		for i, part := range parts {
			if part.mode == Enforce || !enforced {
				eligible = append(eligible, i)
			}
		}
		if slices.ContainsFunc(eligible, func(i int) bool { return !parts[i].allowed }) {
			eligible = slices.DeleteFunc(eligible, func(i int) bool { return parts[i].allowed })
			longest := func(i int) uint64 { return uint64(parts[i].wait) } // Never becomes the largest
			slices.SortStableFunc(eligible, func(i, j int) int { return cmp.Compare(longest(j), longest(i)) })
		} else {
			calls := func(i int) int64 { return parts[i].remaining / parts[i].cost }
			slices.SortStableFunc(eligible, func(i, j int) int { return cmp.Compare(calls(i), calls(j)) })
		}
		verdict, checks := verdictOf(ClaimDecided, allowed, parts...)
		decision, err := verdict.Decision("", checks, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := checks[eligible[0]].Policy; decision.Policy != want {
			t.Fatalf("%+v: got %s on top, want %s", parts, decision.Policy.ID, want.ID)
		}
		if decision.Allowed && decision.RetryAfterMicros != 0 {
			t.Fatalf("allowed, and to wait %d µs", decision.RetryAfterMicros)
		}
	})
}

func TestUsedGivesTheVersionThatDecided(t *testing.T) {
	t.Parallel()
	verdict, checks := verdictOf(ClaimDecided, true, judged{cost: 1, allowed: true, remaining: 9}, judged{cost: 1, allowed: true})
	decision, err := verdict.Decision("", checks, nil)
	if err != nil {
		t.Fatal(err)
	}
	fast := Decision{Policy: checks[0].Policy}
	for _, test := range []struct {
		of   Decision
		id   string
		want *Installed
	}{{decision, "a", checks[0].Policy}, {decision, "b", checks[1].Policy}, {decision, "c", nil}, {fast, "a", checks[0].Policy}, {fast, "b", nil}} {
		if got := test.of.Used(test.id); got != test.want {
			t.Errorf("%s: got %v, want %v", test.id, got, test.want)
		}
	}
}
