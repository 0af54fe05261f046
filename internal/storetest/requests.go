package storetest

import (
	"slices"

	"github.com/rationhq/ration/policy"
)

// recent is how many operation ids back a history repeats and settles: few, so
// that their charges still count.
const recent = 20

// call makes up a call of the general path.
func (a *author) call() step {
	made := call{stale: a.random.IntN(50) == 0}
	for range 1 + a.random.IntN(claimsMax) {
		next := a.claim()
		if next.operation > 0 && slices.ContainsFunc(made.claims, func(c claim) bool { return c.operation == next.operation }) {
			continue // no operation occurs twice
		}
		made.claims = append(made.claims, next)
	}
	return made
}

// claim makes up a request: a new one, or one under an operation id that was
// used.
func (a *author) claim() claim {
	if len(a.operations) > 0 && a.random.IntN(5) == 0 {
		return a.repeated()
	}
	made := claim{checks: a.checks()}
	switch kind := a.random.IntN(8); {
	case kind == 0:
		made.peek = true
	case kind < 4 && a.pace.operations:
		made.content = a.random.IntN(3)
		if a.random.IntN(2) == 0 {
			made.stated = largest(made.checks)
		}
		a.operations = append(a.operations, claim{})
		made.operation = len(a.operations)
		a.operations[made.operation-1] = made
	}
	return made
}

// checks makes up what a request has to pass: some of the policies, some by
// the cost of the request and some by a cost of their own.
func (a *author) checks() []passed {
	var checks []passed
	slots := a.random.Perm(slotsMax)[:1+a.random.IntN(checksMax)]
	slices.Sort(slots)
	cost := a.cost(a.slots[slots[a.random.IntN(len(slots))]].capacity)
	if a.random.IntN(2) == 0 {
		cost = 1 // so that many policies allow it
	}
	for _, slot := range slots {
		check := passed{slot: slot, key: a.random.IntN(keysMax), cost: cost, priced: true}
		if a.random.IntN(4) == 0 {
			check.cost, check.priced = 1+a.random.Int64N(3), false
		}
		checks = append(checks, check)
	}
	return checks
}

// largest is the largest cost of the checks.
func largest(checks []passed) int64 {
	cost := int64(0)
	for _, check := range checks {
		cost = max(cost, check.cost)
	}
	return cost
}

// repeated makes up a request under an operation id that was used, mostly the
// same one as it was.
func (a *author) repeated() claim {
	again := a.operations[a.used()-1]
	switch a.random.IntN(12) {
	case 0:
		again.content++
	case 1:
		again.stated = largest(again.checks)
	case 2:
		again.stated = 0
	case 3:
		again.stated = 1 + a.random.Int64N(5)
	case 4:
		again.checks = a.checks()
	case 5:
		again.checks = nil
	}
	return again
}

// used is the number of an operation id that was used, a recent one as a rule.
func (a *author) used() int {
	back := a.random.IntN(len(a.operations))
	if a.random.IntN(4) > 0 {
		back = min(back, a.random.IntN(recent))
	}
	return len(a.operations) - back
}

// settle makes up a settlement: of nothing, less, the same, more and far more
// than was charged; and sometimes the last one again, or nearly.
func (a *author) settle() step {
	switch again := a.random.IntN(20); {
	case len(a.operations) == 0 || again == 0:
		return settle{operation: len(a.operations) + 1, actual: 1}
	case again < 3 && a.settled.operation > 0:
		return a.settled
	case again < 5 && a.settled.operation > 0:
		return settle{operation: a.settled.operation, actual: a.settled.actual / 2}
	}
	a.settled = a.settlement(a.used())
	return a.settled
}

// settlement makes up what an operation came to cost.
func (a *author) settlement(operation int) settle {
	made := settle{operation: operation}
	charged := largest(a.operations[operation-1].checks)
	switch a.random.IntN(6) {
	case 0: // everything is given back
	case 1:
		made.actual = a.random.Int64N(charged + 1)
	case 2:
		made.actual = charged
	case 3:
		made.actual = min(policy.CostMax, charged+1+a.random.Int64N(3))
	case 4:
		made.actual = 3 * min(policy.CostMax/3, charged)
	default:
		made.actual = policy.CostMax
	}
	return made
}

// endOrRenew makes up what happens to a slot.
func (a *author) endOrRenew() step {
	return endOrRenew{
		renew: a.random.IntN(2) == 0, back: a.random.IntN(1 + a.random.IntN(30)),
		atEnd: a.random.IntN(3) == 0, offMicros: int64(a.random.IntN(3) - 1),
	}
}
