package memstore

import (
	"math"
	"math/big"

	"github.com/rationhq/ration/policy"
)

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

func (b bucket) charged(l limit, cost, nowMicros int64) (after state, mark int64) {
	taken, _ := b.take(l, tokens(cost), nowMicros)
	return taken, 0 // a bucket forgets what its tokens were spent on
}

// corrected gives tokens back, up to a full bucket, or takes more, down to a
// debt of a whole one.
func (b bucket) corrected(l limit, _, charged, actual, nowMicros int64) (after state, applied, clamped bool) {
	b = b.settled(l, nowMicros)
	left := new(big.Rat).Add(b.tokens, tokens(charged))
	left = least(left.Sub(left, tokens(actual)), l.capacity)
	if debt := new(big.Rat).Neg(l.capacity); left.Cmp(debt) < 0 {
		left, clamped = debt, true
	}
	return bucket{tokens: left, atMicros: b.atMicros}, true, clamped
}

// waitMicros is until the bucket holds want tokens.
func (b bucket) waitMicros(l limit, want *big.Rat, nowMicros int64) int64 {
	now := b.settled(l, nowMicros)
	lack := new(big.Rat).Sub(want, now.tokens)
	if lack.Sign() <= 0 {
		return 0
	}
	// Earning begins when the clock has reached the bucket. What is beyond all time is the end of it.
	wait := ceil(lack.Quo(lack, l.rate))
	if wait.Add(wait, big.NewInt(now.atMicros-nowMicros)); !wait.IsInt64() {
		return math.MaxInt64
	}
	return wait.Int64()
}

// resetMicros is until the bucket is full.
func (b bucket) resetMicros(l limit, nowMicros int64) int64 {
	return b.waitMicros(l, l.capacity, nowMicros)
}

// remaining is the number of whole tokens at the instant.
func (b bucket) remaining(l limit, nowMicros int64) int64 {
	whole := floor(b.settled(l, nowMicros).tokens).Int64()
	return max(0, whole)
}

// crossed lets the bucket earn under the old version until the new one is in
// force; then what it holds, or the same fraction of the new capacity, is
// rounded down to the new version's units and clamped to the new capacity.
func (b bucket) crossed(before, after limit, rule policy.Balances, installedAtMicros int64) state {
	b = b.settled(before, installedAtMicros)
	held := b.tokens
	if rule == policy.Scale {
		fraction := new(big.Rat).Quo(held, before.capacity)
		held = fraction.Mul(fraction, after.capacity)
	}
	units := floor(new(big.Rat).Quo(held, after.unit))
	kept := new(big.Rat).Mul(new(big.Rat).SetInt(units), after.unit)
	kept = least(kept, after.capacity)
	if debt := new(big.Rat).Neg(after.capacity); kept.Cmp(debt) < 0 {
		kept = debt
	}
	return bucket{tokens: kept, atMicros: b.atMicros}
}

// same says whether both hold the same and earn from the same instant.
func (b bucket) same(idle state, l limit, nowMicros int64) bool {
	b, o := b.settled(l, nowMicros), idle.(bucket).settled(l, nowMicros) //nolint:forcetypeassert // states of one limit are of one kind
	return b.atMicros == o.atMicros && b.tokens.Cmp(o.tokens) == 0
}
