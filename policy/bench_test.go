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

func BenchmarkKeyOf(b *testing.B) {
	spec := &Spec{Per: []Attribute{Account, Operation}}
	values := [AttributeCount]string{Account: "account-0001", Operation: "report.create"}
	b.ReportAllocs()
	for b.Loop() {
		KeyOf("report-create", spec, &values)
	}
}

func BenchmarkMatch(b *testing.B) {
	shapes := map[string]func(i int) Match{
		"operations": func(i int) Match { return Match{Operation: {fmt.Sprintf("op%d.create", i)}} },
		"prefixes":   func(i int) Match { return Match{Operation: {fmt.Sprintf("op%d.*", i)}} },
		"accounts":   func(i int) Match { return Match{Operation: {"op0.create"}, Account: {fmt.Sprintf("a%d", i)}} },
		"plans":      func(i int) Match { return Match{Operation: {"op0.create"}, Plan: {fmt.Sprintf("p%d", i)}, Region: {"*"}} },
		"networks":   func(i int) Match { return Match{IP: {fmt.Sprintf("10.%d.%d.0/24", i/256, i%256)}} },
	}
	for name, shape := range shapes {
		for _, count := range []int{10, 1000, 10000} {
			b.Run(fmt.Sprintf("%s/%d", name, count), func(b *testing.B) {
				var policies []*Installed
				for i := range count {
					spec := &Spec{Match: shape(i), Per: []Attribute{Account, Operation}, Costs: Costs{Default: 1}}
					policies = append(policies, &Installed{ID: fmt.Sprintf("p%d", i), Spec: spec})
				}
				set := Compile(1, policies)
				request := &Request{}
				request.Values = [AttributeCount]string{Account: "a0", Operation: "op0.create", Plan: "p0", Region: "eu", IP: "10.0.0.7"}
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
