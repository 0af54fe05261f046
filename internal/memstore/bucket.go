package memstore

import (
	"math/big"

	"github.com/rationhq/ration/policy"
)

// limit is one version of a token bucket's rule, in exact fractions.
type limit struct {
	capacity *big.Rat // tokens
	rate     *big.Rat // tokens per microsecond
	unit     *big.Rat // the smallest amount the store keeps, in tokens
}

// limitOf reads a policy's limit.
func limitOf(l policy.Limit) limit {
	return limit{
		capacity: tokens(l.Capacity),
		rate:     big.NewRat(l.Rate.N, l.Rate.D),
		unit:     big.NewRat(1, l.Rate.D),
	}
}

// full is a bucket that has never spent.
func (l limit) full(nowMicros int64) bucket {
	return bucket{tokens: l.capacity, atMicros: nowMicros}
}

// bucket is what one key holds. It is a value: spending makes another one.
type bucket struct {
	tokens   *big.Rat // at atMicros; never changed in place
	atMicros int64
}

// settled is the bucket at an instant, with all that it has earned by then. A
// clock that is behind the bucket earns nothing and does not move it back.
func (b bucket) settled(l limit, nowMicros int64) bucket {
	if nowMicros <= b.atMicros {
		return b
	}
	elapsed := new(big.Int).Sub(big.NewInt(nowMicros), big.NewInt(b.atMicros))
	earned := new(big.Rat).Mul(l.rate, new(big.Rat).SetInt(elapsed))
	return bucket{tokens: least(earned.Add(earned, b.tokens), l.capacity), atMicros: nowMicros}
}

// take spends cost tokens, if the bucket has them at the instant.
func (b bucket) take(l limit, cost *big.Rat, nowMicros int64) (after bucket, admitted bool) {
	now := b.settled(l, nowMicros)
	if now.tokens.Cmp(cost) < 0 {
		return b, false
	}
	return bucket{tokens: new(big.Rat).Sub(now.tokens, cost), atMicros: now.atMicros}, true
}

// waitMicros is how long after the instant the bucket holds want tokens, if
// nothing is taken meanwhile: 0 when it does already. The caller sees to it
// that want does not exceed the capacity.
func (b bucket) waitMicros(l limit, want *big.Rat, nowMicros int64) int64 {
	now := b.settled(l, nowMicros)
	lack := new(big.Rat).Sub(want, now.tokens)
	if lack.Sign() <= 0 {
		return 0
	}
	// Earning begins when the clock has reached the bucket.
	return now.atMicros - nowMicros + ceil(lack.Quo(lack, l.rate)).Int64()
}

// remaining is the number of whole tokens at the instant.
func (b bucket) remaining(l limit, nowMicros int64) int64 {
	whole := floor(b.settled(l, nowMicros).tokens).Int64()
	return max(0, whole)
}

// crossed carries the bucket into the next version of its policy by the rule
// `keep`: it earns under the old version until the new one is in force, then
// what it holds is rounded down to the new version's units and clamped to the
// new capacity.
func (b bucket) crossed(before, after limit, installedAtMicros int64) bucket {
	b = b.settled(before, installedAtMicros)
	units := floor(new(big.Rat).Quo(b.tokens, after.unit))
	kept := new(big.Rat).Mul(new(big.Rat).SetInt(units), after.unit)
	kept = least(kept, after.capacity)
	if debt := new(big.Rat).Neg(after.capacity); kept.Cmp(debt) < 0 {
		kept = debt
	}
	return bucket{tokens: kept, atMicros: b.atMicros}
}

// same says whether two buckets give the same answers from the instant on, as
// long as the clock does not step back behind it.
func (b bucket) same(other bucket, l limit, nowMicros int64) bool {
	b, other = b.settled(l, nowMicros), other.settled(l, nowMicros)
	return b.atMicros == other.atMicros && b.tokens.Cmp(other.tokens) == 0
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
