package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// install makes a policy of version 1.
func install(id string, spec Spec) *Installed {
	if spec.Costs.Default == 0 {
		spec.Costs.Default = 1
	}
	if spec.IPPrefix == (IPPrefix{}) {
		spec.IPPrefix = defaultIPPrefix()
	}
	return &Installed{ID: id, Version: 1, Spec: &spec, Mode: spec.Mode}
}

// idsOf gives the ids of what is checked.
func idsOf(checks []Check) []string {
	var ids []string
	for _, check := range checks {
		ids = append(ids, check.Policy.ID)
	}
	return ids
}

func TestMatchSaysWhatToCheck(t *testing.T) {
	t.Parallel()
	policies := []*Installed{
		install("z-global", Spec{Match: Match{Operation: {"report.*"}}}),
		install("a-account", Spec{
			Match: Match{Operation: {"report.create"}, Plan: {"standard"}}, Per: []Attribute{Account, Operation},
			Costs: Costs{Default: 1, Operations: map[string]int64{"report.create": 5}},
		}),
		install("m-user", Spec{Match: Match{Operation: {"report.*"}}, Per: []Attribute{Account, User}}),
		install("y-off", Spec{Match: Match{Operation: {"*"}}, Mode: Disabled}),
		install("x-off", Spec{Match: Match{Operation: {"report.create"}}, Mode: Disabled}),
		install("other", Spec{Match: Match{Operation: {"other"}}}),
	}
	set := Compile(9, policies)
	request := &Request{Values: [AttributeCount]string{Account: "A", Plan: "standard", Operation: "report.create"}}
	var m Matched
	for range 2 { // the second time with used buffers
		if err := set.Match(request, &m); err != nil {
			t.Fatal(err)
		}
		want := []Check{
			{policies[1], KeyOf("a-account", policies[1].Spec, &request.Values), 5, true},
			{policies[0], KeyOf("z-global", policies[0].Spec, &request.Values), 1, false},
		}
		if !slices.Equal(m.Checks, want) {
			t.Errorf("got checks %v, want %v", m.Checks, want)
		}
		if m.Disabled != policies[4] {
			t.Errorf("got disabled %v, want x-off, the first by id", m.Disabled)
		}
		if !slices.Equal(m.Skipped, []Skipped{{policies[2], User}}) {
			t.Errorf("got skipped %v, want m-user for want of user", m.Skipped)
		}
	}
	if set.Generation() != 9 {
		t.Errorf("got generation %d, want 9", set.Generation())
	}
	if p, ok := set.Lookup("other"); !ok || p != policies[5] {
		t.Errorf("looking up other: got %v, %t", p, ok)
	}
	if p, ok := set.Lookup("othe"); ok {
		t.Errorf("looking up what is not there: got %v", p)
	}
	if ids := len(set.Policies()); ids != len(policies) || set.Policies()[0].ID != "a-account" || policies[0].ID != "z-global" {
		t.Errorf("policies are not in order, or the caller's slice was sorted")
	}
}

func TestMatchRefuses(t *testing.T) {
	t.Parallel()
	login := install("login", Spec{
		Match: Match{Operation: {"sign-in"}}, Per: []Attribute{Account, IP, TargetAccount}, OnMissing: Reject,
	})
	off := install("off", Spec{Match: Match{Operation: {"off", "cheap"}}, Mode: Disabled, Costs: Costs{Default: 1, Max: 7}})
	cheap := install("cheap", Spec{Match: Match{Operation: {"cheap"}}})
	skips := install("skips", Spec{Match: Match{Operation: {"skips"}}, Per: []Attribute{User}})
	set := Compile(1, []*Installed{login, off, cheap, skips})
	match := func(operation string, cost int64) error {
		request := &Request{Values: [AttributeCount]string{APIKey: "k", Operation: operation}, Cost: cost}
		return set.Match(request, new(Matched))
	}
	wantFaults(t, match("sign-in", 0), ReasonInvalidRequest, "/verifiedAccount", "/ip", "/targetAccount")
	wantFaults(t, match("unknown", 0), ReasonNoPolicy)
	wantFaults(t, match("skips", 0), ReasonNoPolicy)
	wantFaults(t, match("cheap", 8), ReasonCostNotAllowed, "/cost")
	for operation, cost := range map[string]int64{"off": 5, "cheap": 7} {
		if err := match(operation, cost); err != nil {
			t.Errorf("%s stating %d: %v", operation, cost, err)
		}
	}
	wantFaults(t, Compile(1, nil).Match(&Request{}, new(Matched)), ReasonNoPolicy)
}

// naiveMatches reads a policy's match as design and documentation say it, one
// pattern after the other.
func naiveMatches(spec *Spec, values *[AttributeCount]string) bool {
	for attribute, patterns := range spec.Match {
		if len(patterns) > 0 && !slices.ContainsFunc(patterns, func(pattern string) bool {
			return naivePattern(Attribute(attribute), pattern, values[attribute])
		}) {
			return false
		}
	}
	return true
}

func naivePattern(attribute Attribute, pattern, value string) bool {
	switch {
	case value == "":
		return false
	case strings.HasSuffix(pattern, "*"):
		return strings.HasPrefix(value, strings.TrimSuffix(pattern, "*"))
	case attribute == IP && strings.Contains(pattern, "/"):
		return netip.MustParsePrefix(pattern).Contains(netip.MustParseAddr(value))
	default:
		return pattern == value
	}
}

// Few letters and short texts make nested prefixes and coincidences likely.
func drawName(t *rapid.T, label string) string {
	return rapid.StringMatching(`[ab]{1,4}`).Draw(t, label)
}

func drawAddress(t *rapid.T, label string) netip.Addr {
	low := rapid.IntRange(0, 7).Draw(t, label)
	high := rapid.SampledFrom([]int{0, 1, 128}).Draw(t, label+"High")
	if rapid.Bool().Draw(t, label+"Is4") {
		return netip.AddrFrom4([4]byte{byte(high), 0, 0, byte(low)})
	}
	return netip.AddrFrom16([16]byte{0: byte(high), 15: byte(low)})
}

func drawPattern(t *rapid.T, attribute Attribute) string {
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	switch {
	case kind == 0:
		return "*"
	case attribute == IP && kind < 5:
		address := drawAddress(t, "network")
		bits := rapid.IntRange(0, address.BitLen()).Draw(t, "bits")
		return netip.PrefixFrom(address, bits).Masked().String()
	case attribute == IP:
		return drawAddress(t, "address").String()
	case kind < 5:
		return drawName(t, "prefix") + "*"
	default:
		return drawName(t, "name")
	}
}

func drawPolicies(t *rapid.T) []*Installed {
	var policies []*Installed
	for i := range rapid.IntRange(0, 30).Draw(t, "policies") {
		var spec Spec
		for attribute := range spec.Match {
			if rapid.IntRange(0, 2).Draw(t, "given") > 0 {
				continue
			}
			for range rapid.IntRange(1, 4).Draw(t, "patterns") {
				spec.Match[attribute] = append(spec.Match[attribute], drawPattern(t, Attribute(attribute)))
			}
		}
		spec.Mode = rapid.SampledFrom([]Mode{Enforce, Shadow, Disabled}).Draw(t, "mode")
		if rapid.IntRange(0, 3).Draw(t, "keyed") == 0 {
			spec.Per = []Attribute{Plan}
		}
		policies = append(policies, install(fmt.Sprintf("p%02d", (i*17)%31), spec))
	}
	return policies
}

func TestMatchAgreesWithANaiveScan(t *testing.T) {
	t.Parallel()
	var m Matched // kept over all requests, as a server does
	rapid.Check(t, func(t *rapid.T) {
		policies := drawPolicies(t)
		set := Compile(1, policies)
		slices.SortFunc(policies, func(a, b *Installed) int { return strings.Compare(a.ID, b.ID) })
		for range 5 {
			request := &Request{}
			for attribute := range request.Values {
				if rapid.IntRange(0, 3).Draw(t, "present") == 0 {
					continue
				}
				request.Values[attribute] = drawName(t, "value")
				if Attribute(attribute) == IP {
					request.Values[IP] = drawAddress(t, "value").String()
				}
			}
			var checks, skipped, disabled []string
			for _, policy := range policies {
				switch {
				case !naiveMatches(policy.Spec, &request.Values):
				case policy.Spec.Mode == Disabled:
					disabled = append(disabled, policy.ID)
				case len(policy.Spec.Per) > 0 && request.Values[Plan] == "":
					skipped = append(skipped, policy.ID)
				default:
					checks = append(checks, policy.ID)
				}
			}
			err := set.Match(request, &m)
			if (err == nil) != (len(checks)+len(disabled) > 0) {
				t.Fatalf("%v: got error %v with checks %v and disabled %v", request.Values, err, checks, disabled)
			}
			if diff := cmp.Diff(checks, idsOf(m.Checks)); diff != "" {
				t.Fatalf("%v: checks (-naive +got):\n%s", request.Values, diff)
			}
			var gotSkipped []string
			for _, skip := range m.Skipped {
				gotSkipped = append(gotSkipped, skip.Policy.ID)
			}
			if diff := cmp.Diff(skipped, gotSkipped); diff != "" {
				t.Fatalf("%v: skipped (-naive +got):\n%s", request.Values, diff)
			}
			if (m.Disabled == nil) != (len(disabled) == 0) || m.Disabled != nil && m.Disabled.ID != disabled[0] {
				t.Fatalf("%v: got disabled %v, want the first of %v", request.Values, m.Disabled, disabled)
			}
		}
	})
}

// TestMatchLooksAtFewPolicies holds the index to its purpose, without a clock:
// of 10,000 policies of one operation it must look at a handful.
func TestMatchLooksAtFewPolicies(t *testing.T) {
	t.Parallel()
	for name, shape := range matchShapes {
		set := Compile(1, shapedPolicies(shape, 10_000))
		request := &Request{Values: shapedValues}
		values := set.matchable(&request.Values)
		if count := len(set.candidates(nil, &values)); count != 1 {
			t.Errorf("%s: looked at %d of 10,000 policies, want 1", name, count)
		}
	}
}
