package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// explainedSet has a policy for every standing. The key of a is that of the
// account A.
func explainedSet(t *testing.T) *Set {
	t.Helper()
	const bucket = `"limit":{"algorithm":"token_bucket","capacity":10,"refillTokens":1,"refillSeconds":1}}`
	of := func(id, body string) *Installed {
		p := ofSpec(t, id, "{"+body+","+bucket)
		p.Number = int32(id[0])
		return p
	}
	exempt := of("d-exempt", `"match":{},"per":["account"]`)
	blocked := of("e-blocked", `"match":{},"per":["account"],"mode":"shadow"`)
	limited := of("f-limited", `"match":{},"per":["account"]`)
	values := [AttributeCount]string{Account: "A"}
	keyed := func(p *Installed, override Override) {
		p.Overrides = map[Key]Override{KeyOf(p.ID, p.Spec, &values): override}
	}
	keyed(exempt, Override{Action: OverrideExempt})
	keyed(blocked, Override{Action: OverrideBlocked})
	instead := *limited
	instead.Number = 99
	keyed(limited, Override{Action: OverrideLimit, Limited: &instead, Key: Key{1}})
	return Compile(1, []*Installed{
		of("a-checked", `"match":{"operations":["report.*"],"plans":["standard"]},"per":["account"],"costs":{"operations":{"report.read":5}}`),
		of("b-off", `"match":{},"per":["account"],"mode":"disabled"`),
		of("c-skipped", `"match":{},"per":["account","ip"]`),
		exempt, blocked, limited,
		of("x-plan", `"match":{"operations":["report.*"],"plans":["gold","silver"]},"per":["account"]`),
		of("y-user", `"match":{"users":["*"]},"per":["account"]`),
		of("z-operation", `"match":{"operations":["search.*"],"plans":["gold"]},"per":["account"]`),
	})
}

func TestExplain(t *testing.T) {
	t.Parallel()
	set := explainedSet(t)
	request := &Request{Values: [AttributeCount]string{Account: "A", Operation: "report.read", Plan: "standard"}}
	var matched Matched
	explanation := set.Explain(request, "", &matched)
	var got []string
	for _, e := range explanation.Matching {
		line := fmt.Sprintf("%s %s %d", e.Policy.ID, e.Standing, e.Cost)
		if e.Override != nil {
			line += " " + e.Override.Action.String()
		}
		if e.Standing == Skips {
			line += " " + e.Missing.String()
		} else if e.Values[0] != (KeyValue{Account, "A"}) {
			t.Errorf("%s: key of %v", e.Policy.ID, e.Values)
		}
		got = append(got, line)
	}
	for _, other := range explanation.Others {
		got = append(got, fmt.Sprintf("%s %s=%s", other.Policy.ID, other.Attribute, other.Value))
	}
	want := []string{
		"a-checked checked 5", "b-off disabled 1", "c-skipped skipped 1 ip",
		"d-exempt exempt 1 exempt", "e-blocked blocked 1 blocked", "f-limited checked 1 limit",
		"x-plan plan=standard", "y-user user=", "z-operation operation=report.read",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if e := explanation.Matching[0]; e.Key != KeyOf("a-checked", e.Policy.Spec, &request.Values) {
		t.Errorf("key %s", e.Key.Hex())
	}
	if explanation.Refusal != nil || !explanation.Allowed || len(matched.Checks) != 2 || explanation.Matching[5].Key != (Key{1}) {
		t.Errorf("%v, allowed %t, asks %d", explanation.Refusal, explanation.Allowed, len(matched.Checks))
	}

	// What the store says is put beside the policy that it is said of.
	usage := &Usage{AtMicros: 7}
	for _, check := range matched.Checks {
		usage.Parts = append(usage.Parts, DecisionPart{Policy: check.Policy, Remaining: 3, Allowed: check.Policy.Number == 99})
	}
	explanation.Seen(usage)
	if explanation.Allowed || explanation.AtMicros != 7 || explanation.Matching[0].Part == nil || explanation.Matching[1].Part != nil || explanation.Matching[5].Part == nil {
		t.Errorf("%+v", explanation)
	}
}

func TestExplainOfOnePolicy(t *testing.T) {
	t.Parallel()
	var matched Matched
	request := &Request{Values: [AttributeCount]string{Account: "A", Operation: "report.read"}}
	explanation := explainedSet(t).Explain(request, "z-operation", &matched)
	if len(explanation.Others) != 1 || explanation.Others[0].Policy.ID != "z-operation" || explanation.More != 0 {
		t.Errorf("%+v", explanation.Others)
	}
}

// A request that would be refused is explained all the same.
func TestExplainOfARefusal(t *testing.T) {
	t.Parallel()
	const rest = `"onMissing":"reject","limit":{"algorithm":"fixed_window","limit":10,"windowSeconds":1}}`
	var policies []*Installed
	for i := range 200 {
		policies = append(policies, ofSpec(t, fmt.Sprintf("p%03d", i), `{"match":{"operations":["search"]},"per":["ip"],`+rest))
	}
	set := Compile(1, policies)
	for _, c := range []struct {
		operation, ip string
		reason        Reason
		matching      int
		others, more  int
	}{
		{"report", "192.0.2.1", ReasonNoPolicy, 0, 100, 100},
		{"search", "", ReasonInvalidRequest, 200, 0, 0},
		{"search", "192.0.2.1", ReasonTooManyPolicies, 200, 0, 0},
	} {
		var matched Matched
		explanation := set.Explain(&Request{Values: [AttributeCount]string{Account: "A", Operation: c.operation, IP: c.ip}}, "", &matched)
		refused, _ := errors.AsType[*Error](explanation.Refusal)
		if refused == nil || refused.Reason != c.reason || explanation.Allowed || len(matched.Checks) != 0 {
			t.Errorf("%s: %v, allowed %t, asks %d", c.operation, explanation.Refusal, explanation.Allowed, len(matched.Checks))
		}
		if len(explanation.Matching) != c.matching || len(explanation.Others) != c.others || explanation.More != c.more {
			t.Errorf("%s: %d match, %d and %d more do not", c.operation, len(explanation.Matching), len(explanation.Others), explanation.More)
		}
		if c.reason == ReasonInvalidRequest && explanation.Matching[0].Standing != Rejects {
			t.Errorf("stands %s", explanation.Matching[0].Standing)
		}
	}
}
