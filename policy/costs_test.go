package policy

import "testing"

func TestCharge(t *testing.T) {
	t.Parallel()
	priced := Costs{Default: 2, Operations: map[string]int64{"report.create": 5}, Max: 10}
	fixed := Costs{Default: 2}
	for _, test := range []struct {
		costs     Costs
		operation string
		stated    int64
		want      int64
		own       bool
	}{
		{priced, "report.create", 0, 5, true},
		{priced, "report.create", 5, 5, true},
		{priced, "report.create", 4, 5, true}, // an operation's cost beats max
		{priced, "report.create", 10, 5, true},
		{priced, "report.read", 0, 2, false},
		{priced, "report.read", 1, 1, true},
		{priced, "report.read", 10, 10, true},
		{priced, "report.read", 11, 2, false},
		{fixed, "report.read", 0, 2, false},
		{fixed, "report.read", 2, 2, true},
		{fixed, "report.read", 1, 2, false},
		{fixed, "report.read", CostMax, 2, false},
	} {
		spec := &Spec{Costs: test.costs}
		cost, own := spec.Charge(test.operation, test.stated)
		if cost != test.want || own != test.own {
			t.Errorf("%s stating %d: got %d, %t, want %d, %t", test.operation, test.stated, cost, own, test.want, test.own)
		}
	}
}
