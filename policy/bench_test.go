package policy

import (
	"fmt"
	"testing"
)

func BenchmarkParseRequest(b *testing.B) {
	body := []byte(`{"verifiedAccount":"A","operation":"report.create","cost":5,"policyVersion":7}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseRequest(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseBatch(b *testing.B) {
	body := []byte(`{"decisions":[`)
	for i := range 100 {
		body = fmt.Appendf(body, `{"verifiedAccount":"account-%d","operation":"report.create"},`, i)
	}
	body = append(body[:len(body)-1], "]}"...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseBatch(body, 1000); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkKeyOf(b *testing.B) {
	spec := &Spec{Per: []Attribute{Account, Operation}}
	values := [AttributeCount]string{Account: "account-0001", Operation: "report.create"}
	b.ReportAllocs()
	for b.Loop() {
		KeyOf("report-create", spec, &values)
	}
}

// matchShapes are ways in which thousands of policies differ from each other;
// of each, only the first matches shapedValues.
var matchShapes = map[string]func(i int) Match{
	"operations": func(i int) Match { return Match{Operation: {fmt.Sprintf("op%d.create", i)}} },
	"prefixes":   func(i int) Match { return Match{Operation: {fmt.Sprintf("op%d.*", i)}} },
	"accounts":   func(i int) Match { return Match{Operation: {"op0.create"}, Account: {fmt.Sprintf("a%d", i)}} },
	"plans": func(i int) Match {
		return Match{Operation: {"op0.create"}, Plan: {fmt.Sprintf("p%d", i)}, Region: {"*"}}
	},
	"networks": func(i int) Match { return Match{IP: {fmt.Sprintf("10.%d.%d.0/24", i/256, i%256)}} },
}

var shapedValues = [AttributeCount]string{Account: "a0", Operation: "op0.create", Plan: "p0", Region: "eu", IP: "10.0.0.7"}

func shapedPolicies(shape func(i int) Match, count int) []*Installed {
	policies := make([]*Installed, count)
	for i := range policies {
		policies[i] = install(fmt.Sprintf("p%d", i), Spec{Match: shape(i), Per: []Attribute{Account, Operation}})
	}
	return policies
}

func BenchmarkMatch(b *testing.B) {
	for name, shape := range matchShapes {
		for _, count := range []int{10, 1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", name, count), func(b *testing.B) {
				if name == "networks" && count > 1<<16 {
					b.Skip("10.0.0.0/8 has 65,536 networks of /24")
				}
				set := Compile(1, shapedPolicies(shape, count))
				request := &Request{Values: shapedValues}
				var m Matched
				b.ReportAllocs()
				for b.Loop() {
					if err := set.Match(request, &m); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, count := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			policies := shapedPolicies(matchShapes["accounts"], count)
			b.ReportAllocs()
			for b.Loop() {
				Compile(1, policies)
			}
		})
	}
}

//nolint:paralleltest // allocations are counted over the whole process
func TestHotPathAllocations(t *testing.T) {
	body := []byte(`{"verifiedAccount":"account-0001","operation":"report.create","ip":"2001:db8::1","cost":5,"policyVersion":7}`)
	set := Compile(1, shapedPolicies(matchShapes["accounts"], 100))
	request := &Request{Values: shapedValues}
	several := Compile(1, []*Installed{
		install("account", Spec{Per: []Attribute{Account}}), install("global", Spec{Mode: Shadow}), install("ip", Spec{Per: []Attribute{IP}}),
	})
	spec := &Spec{Per: []Attribute{Account, IP, Operation}, IPPrefix: defaultIPPrefix()}
	var m Matched
	for name, test := range map[string]struct {
		most float64
		run  func()
	}{
		// The reader, the request, and a text for each of its three attributes;
		// the address is read as text and written in canonical form.
		"ParseRequest": {6, func() { _, _ = ParseRequest(body) }},
		"Match":        {0, func() { _ = set.Match(request, &m) }},
		"Match of 3":   {0, func() { _ = several.Match(request, &m) }},
		"KeyOf":        {0, func() { KeyOf("report-create", spec, &shapedValues) }},
	} {
		if count := testing.AllocsPerRun(100, test.run); count > test.most {
			t.Errorf("%s: got %v allocations, want at most %v", name, count, test.most)
		}
	}
}
