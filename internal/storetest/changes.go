package storetest

import "github.com/rationhq/ration/policy"

// change makes up what becomes of a slot's policy: its next version as a rule,
// or its end.
func (a *author) change(slot int) step {
	if a.random.IntN(8) > 0 {
		return a.install(slot)
	}
	wrong := a.random.IntN(10) == 0
	a.gone[slot] = a.gone[slot] || !wrong
	return remove{slot: slot, wrongVersion: wrong}
}

// install makes up the next version of a slot's policy.
func (a *author) install(slot int) step {
	last := a.slots[slot]
	first := last.capacity == 0
	next := install{slot: slot, balances: a.rule(last, a.gone[slot])}
	kind := last
	if !first && (next.balances == policy.Restart && a.random.IntN(4) > 0 || a.random.IntN(20) == 0) {
		kind = a.kind()
	}
	if !kind.sameKind(last) && next.balances != policy.Restart {
		next.balances = policy.Keep // refused
	}
	next.shape = a.shape(kind)
	if !first && !a.gone[slot] && a.random.IntN(8) == 0 {
		next.shape = last // the same content, which only a new beginning makes a version
	}
	if next.balances == policy.Restart {
		next.start = policy.StartFull
		if next.shape.algorithm != policy.Concurrency && a.random.IntN(2) == 0 {
			next.start = policy.StartEmpty
		}
	}
	next.wrongVersion = !first && a.random.IntN(20) == 0
	carries := next.shape.sameKind(last) && (!a.gone[slot] || next.balances == policy.Reset)
	if !next.wrongVersion && (first || carries || next.balances == policy.Restart) {
		a.slots[slot], a.gone[slot] = next.shape, false
	}
	return next
}

// rule makes up what becomes of what a policy keeps. One that was deleted has
// to begin anew as a rule.
func (a *author) rule(kept shape, gone bool) policy.Balances {
	chance := a.random.IntN(20)
	if gone && a.random.IntN(4) > 0 {
		chance = 12 + a.random.IntN(8)
	}
	switch {
	case chance >= 15 || chance >= 12 && kept.algorithm == policy.Concurrency:
		return policy.Restart
	case chance >= 12:
		return policy.Reset
	case chance >= 8 && kept.algorithm == policy.TokenBucket:
		return policy.Scale
	}
	return policy.Keep
}
