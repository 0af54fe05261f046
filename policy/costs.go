package policy

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// costOperationsMax bounds the operations that one policy prices.
const costOperationsMax = 1000

// Costs says what a policy charges.
type Costs struct {
	Default    int64            // tokens, >= 1
	Operations map[string]int64 // by exact operation, nil when none is priced; beats everything else
	Max        int64            // the largest cost a request may state, 0: it may not state one
}

// Charge gives what one request of operation costs, 1 to CostMax tokens, when
// it states a cost itself (0: it states none). own says that it is the
// request's own, the stated cost or the operation's price, and not one that
// the policy charges whatever is asked.
func (s *Spec) Charge(operation string, stated int64) (cost int64, own bool) {
	if price, priced := s.Costs.Operations[operation]; priced {
		return price, true
	}
	if 0 < stated && stated <= s.Costs.Max {
		return stated, true
	}
	return s.Costs.Default, stated == s.Costs.Default
}

// largest gives the largest cost that a request can be charged.
func (c *Costs) largest() int64 {
	largest := max(c.Default, c.Max)
	for _, cost := range c.Operations {
		largest = max(largest, cost)
	}
	return largest
}

var costsMembers = members[Costs]{
	{name: "default", read: func(r *reader, c *Costs, v jsontext.Value) { c.Default = r.positive(v, CostMax) }},
	{name: "operations", read: func(r *reader, c *Costs, v jsontext.Value) {
		r.eachEntry(v, costOperationsMax, func(operation string, cost jsontext.Value) {
			if !isOperation(operation) {
				r.fault(operationDetail)
			}
			if c.Operations == nil {
				c.Operations = make(map[string]int64)
			}
			c.Operations[operation] = r.positive(cost, CostMax)
		})
	}},
	{name: "max", read: func(r *reader, c *Costs, v jsontext.Value) { c.Max = r.positive(v, CostMax) }},
}

// readCosts reads a policy's costs.
func readCosts(r *reader, change *Change, value jsontext.Value) {
	costs := &change.Spec.Costs
	faultsBefore := len(r.faults)
	readObject(r, value, costs, costsMembers)
	if len(r.faults) == faultsBefore && costs.Max != 0 && costs.Max < costs.Default {
		r.faultAt("max", "must not be below the default cost, which a request may always state")
	}
}

// costs writes the costs with the default echoed.
func (w *writer) costs(costs *Costs) {
	w.open("costs", '{')
	w.integer("default", costs.Default)
	if len(costs.Operations) > 0 {
		w.open("operations", '{')
		for _, operation := range slices.Sorted(maps.Keys(costs.Operations)) {
			w.integer(operation, costs.Operations[operation])
		}
		w.close('}')
	}
	if costs.Max != 0 {
		w.integer("max", costs.Max)
	}
	w.close('}')
}
