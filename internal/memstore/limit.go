package memstore

import (
	"math/big"

	"github.com/rationhq/ration/policy"
)

// limit is one version of a policy's rule, in exact fractions.
type limit struct {
	algorithm policy.Algorithm
	strict    bool
	capacity  *big.Rat // tokens
	rate      *big.Rat // token buckets: tokens per microsecond
	unit      *big.Rat // token buckets: the smallest amount the store keeps, in tokens
	span      int64    // the window, or how long a slot lives, in microseconds
}

// limitOf reads a policy's limit.
func limitOf(l policy.Limit) limit {
	rule := limit{algorithm: l.Algorithm, strict: l.Strict, capacity: tokens(l.Capacity), span: l.SpanMicros}
	if l.Algorithm == policy.TokenBucket {
		rule.rate = big.NewRat(l.Rate.N, l.Rate.D)
		rule.unit = big.NewRat(1, l.Rate.D)
	}
	return rule
}

// state is what one key holds under a limit. It is a value: charging it makes
// another one. Every instant is the caller's clock, which may step back.
type state interface {
	// charged is the state behind a charge of a cost that it has room for. mark
	// is where the charge stands, by which it is found when it is settled.
	charged(l limit, cost, nowMicros int64) (after state, mark int64)

	// corrected replaces the charge at mark, of charged tokens, by one of
	// actual tokens. applied is false where the charge counts nowhere any
	// more; clamped says that not all of an extra charge could be made.
	corrected(l limit, mark, charged, actual, nowMicros int64) (after state, applied, clamped bool)

	// remaining is the number of whole tokens that could be charged.
	remaining(l limit, nowMicros int64) int64

	// waitMicros is how long after the instant it first has room for the cost,
	// which is not above the capacity, if nothing else happens: 0 when it does
	// already.
	waitMicros(l limit, cost *big.Rat, nowMicros int64) int64

	// resetMicros is how long after the instant nothing is spent any more.
	resetMicros(l limit, nowMicros int64) int64

	// crossed carries the state into the next version of its policy by the
	// rule keep or scale.
	crossed(before, after limit, rule policy.Balances, installedAtMicros int64) state

	// same says whether it gives the same answers as the idle state from the
	// instant on, as long as the clock does not step back behind it.
	same(idle state, l limit, nowMicros int64) bool
}

// begun is a key that was never charged, of a policy whose state begins at the
// instant.
func (l limit) begun(start policy.Start, nowMicros int64) state {
	if start == policy.StartEmpty {
		return l.spent(l.unspent(nowMicros), nowMicros)
	}
	return l.unspent(nowMicros)
}

// unspent is a key that was never charged, of a policy installed at the
// instant.
func (l limit) unspent(nowMicros int64) state {
	switch {
	case l.algorithm == policy.TokenBucket:
		return l.full(nowMicros)
	case l.aligned():
		return charges{{mark: l.mark(nowMicros, 0)}} // of nothing: counting begins in this window
	default:
		return charges(nil)
	}
}

// spent is a key that was charged all of its limit at the instant; where it
// was ahead of the clock, it stays there.
func (l limit) spent(before state, nowMicros int64) state {
	if c, ok := before.(charges); ok {
		return charges{{mark: l.mark(nowMicros, c.newest()), tokens: l.capacity.Num().Int64()}}
	}
	return bucket{tokens: new(big.Rat), atMicros: max(nowMicros, before.(bucket).atMicros)} //nolint:forcetypeassert // there is no third kind
}

// retryAfterMicros is how long a cost has to wait, [policy.Never] when it is
// above the limit.
func (l limit) retryAfterMicros(s state, cost, nowMicros int64) int64 {
	want := tokens(cost)
	if want.Cmp(l.capacity) > 0 {
		return policy.Never
	}
	return s.waitMicros(l, want, nowMicros)
}

// tokens is a whole number of tokens.
func tokens(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// least is the smaller of two fractions.
func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) <= 0 {
		return a
	}
	return b
}

// floor rounds toward minus infinity: big.Int's Div is Euclidean, which for a
// Rat's positive denominator is just that.
func floor(x *big.Rat) *big.Int { return new(big.Int).Div(x.Num(), x.Denom()) }

// ceil rounds toward plus infinity.
func ceil(x *big.Rat) *big.Int {
	down := floor(new(big.Rat).Neg(x))
	return down.Neg(down)
}
