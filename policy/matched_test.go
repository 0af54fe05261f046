package policy

import (
	"fmt"
	"slices"
	"testing"
)

func TestMatchPricesWhatTheRequestSays(t *testing.T) {
	t.Parallel()
	priced := install("a-priced", Spec{Match: Match{Operation: {"report.*"}}, Costs: Costs{Default: 2, Operations: map[string]int64{"report.create": 5}}})
	stated := install("b-stated", Spec{Match: Match{Operation: {"report.*"}}, Costs: Costs{Default: 1, Max: 10}})
	plain := install("c-plain", Spec{Match: Match{Operation: {"report.*"}}, Mode: Shadow})
	other := install("d-other", Spec{Match: Match{Operation: {"other", "tried"}}, Costs: Costs{Default: 3}})
	tried := install("e-tried", Spec{Match: Match{Operation: {"tried"}}, Mode: Shadow, Costs: Costs{Default: 1, Operations: map[string]int64{"tried": 5}}})
	set := Compile(1, []*Installed{priced, stated, plain, other, tried})
	for _, test := range []struct {
		operation string
		cost      int64
		costs     []int64
		priced    []bool
	}{
		{"report.create", 0, []int64{5, 1, 1}, []bool{true, false, false}},
		{"report.create", 5, []int64{5, 5, 1}, []bool{true, true, false}},
		{"report.create", 7, []int64{5, 7, 1}, []bool{true, true, false}}, // one policy charging it is enough
		{"report.create", 1, []int64{5, 1, 1}, []bool{true, true, true}},  // as its own the default is stated
		{"report.read", 0, []int64{2, 1, 1}, []bool{true, true, true}},    // no cost of its own: the defaults are
		{"report.read", 2, []int64{2, 2, 1}, []bool{true, true, false}},
		{"report.read", 9, []int64{2, 9, 1}, []bool{false, true, false}},
		{"other", 0, []int64{3}, []bool{true}},
		{"other", 3, []int64{3}, []bool{true}},
		{"tried", 0, []int64{3, 5}, []bool{true, true}}, // a shadow policy's price leaves the others' as they are
	} {
		var m Matched
		request := &Request{Values: [AttributeCount]string{User: "u", Operation: test.operation}, Cost: test.cost}
		if err := set.Match(request, &m); err != nil {
			t.Errorf("%s stating %d: %v", test.operation, test.cost, err)
			continue
		}
		var costs []int64
		var own []bool
		for _, check := range m.Checks {
			costs, own = append(costs, check.Cost), append(own, check.Priced)
		}
		if !slices.Equal(costs, test.costs) || !slices.Equal(own, test.priced) {
			t.Errorf("%s stating %d: got costs %v, priced %v, want %v, %v", test.operation, test.cost, costs, own, test.costs, test.priced)
		}
	}
	request := &Request{Values: [AttributeCount]string{User: "u", Operation: "report.create"}, Cost: 11}
	wantFaults(t, set.Match(request, new(Matched)), ReasonCostNotAllowed, "/cost")
}

func TestMatchTakesAtMost64Policies(t *testing.T) {
	t.Parallel()
	for count, ok := range map[int]bool{1: true, 64: true, 65: false, 300: false} {
		var policies []*Installed
		for i := range count {
			policies = append(policies, install(fmt.Sprintf("p%03d", i), Spec{Mode: Mode(i % 2)}))
		}
		// These are not checked, so they do not count.
		policies = append(policies, install("off", Spec{Mode: Disabled}), install("skips", Spec{Per: []Attribute{User}}))
		var m Matched
		err := Compile(1, policies).Match(&Request{Values: [AttributeCount]string{IP: "192.0.2.1", Operation: "a"}}, &m)
		switch {
		case !ok:
			wantFaults(t, err, ReasonTooManyPolicies)
		case err != nil:
			t.Errorf("%d policies: %v", count, err)
		case len(m.Checks) != count:
			t.Errorf("got %d checks of %d policies", len(m.Checks), count)
		}
	}
}

func TestMatchTakesAtMost16Logs(t *testing.T) {
	t.Parallel()
	for logs, ok := range map[int]bool{16: true, 17: false} {
		var policies []*Installed
		for i := range logs {
			policies = append(policies, install(fmt.Sprintf("log%02d", i), Spec{Mode: Mode(i % 2), Limit: Limit{Algorithm: SlidingWindowLog}}))
		}
		strict := Limit{Algorithm: SlidingWindowCounter, Strict: true} // 60 segments at most: it is no log
		policies = append(policies, install("strict", Spec{Limit: strict}), install("off", Spec{Mode: Disabled, Limit: Limit{Algorithm: SlidingWindowLog}}))
		err := Compile(1, policies).Match(&Request{Values: [AttributeCount]string{User: "u", Operation: "a"}}, new(Matched))
		switch {
		case !ok:
			wantFaults(t, err, ReasonTooManyPolicies)
		case err != nil:
			t.Errorf("%d logs: %v", logs, err)
		}
	}
}

func TestShadowPolicyAloneIsChecked(t *testing.T) {
	t.Parallel()
	shadow := install("shadow", Spec{Mode: Shadow, Costs: Costs{Default: 1, Max: 5}})
	var m Matched
	request := &Request{Values: [AttributeCount]string{User: "u", Operation: "a"}, Cost: 5}
	if err := Compile(1, []*Installed{shadow}).Match(request, &m); err != nil || len(m.Checks) != 1 || m.Checks[0].Cost != 5 {
		t.Errorf("got checks %v, %v", m.Checks, err)
	}
}

func TestSpecSaysWhichPathAndWhoseFigures(t *testing.T) {
	t.Parallel()
	for algorithm := range algorithmNames {
		for mode := range modeNames {
			spec := &Spec{Limit: Limit{Algorithm: Algorithm(algorithm)}, Mode: Mode(mode)}
			if want := algorithm == 0 && mode == 0; (&Installed{Spec: spec, Mode: spec.Mode}).FastPath() != want {
				t.Errorf("%s, %s: got fast path %t", spec.Limit.Algorithm, spec.Mode, !want)
			}
		}
	}
	own := map[Attribute]bool{Account: true, User: true, APIKey: true, OAuthToken: true, IP: true}
	for attribute := range Attribute(AttributeCount) {
		spec := &Spec{Per: []Attribute{attribute, Operation}}
		if spec.ShowsFigures() != own[attribute] {
			t.Errorf("keyed by %s: shows figures: %t", attribute, spec.ShowsFigures())
		}
		if spec.Disclose = true; !spec.ShowsFigures() {
			t.Errorf("keyed by %s and disclosed: does not show figures", attribute)
		}
	}
	if (&Spec{}).ShowsFigures() {
		t.Error("a key for all shows figures")
	}
}
