package memstore

import (
	"math"
	"math/big"
	"testing"

	"github.com/rationhq/ration/policy"
)

// A debt cannot be made by the calls there are yet; the rule for carrying one
// over is stated all the same.
func TestDebtCrosses(t *testing.T) {
	t.Parallel()
	thirds := limit{capacity: tokens(10), rate: big.NewRat(1, 3), unit: big.NewRat(1, 3)}
	halves := limit{capacity: tokens(2), rate: big.NewRat(1, 2), unit: big.NewRat(1, 2)}
	for _, c := range []struct {
		rule          policy.Balances
		before, after *big.Rat
	}{
		{policy.Keep, big.NewRat(-1, 3), big.NewRat(-1, 2)}, // toward minus infinity
		{policy.Keep, big.NewRat(-1, 1), big.NewRat(-1, 1)},
		{policy.Keep, big.NewRat(-4, 3), big.NewRat(-3, 2)},
		{policy.Keep, big.NewRat(-9, 1), big.NewRat(-2, 1)}, // clamped
		{policy.Keep, big.NewRat(2, 3), big.NewRat(1, 2)},
		{policy.Keep, big.NewRat(9, 1), big.NewRat(2, 1)},    // clamped
		{policy.Scale, big.NewRat(10, 1), big.NewRat(2, 1)},  // full
		{policy.Scale, big.NewRat(29, 3), big.NewRat(3, 2)},  // 29/15
		{policy.Scale, big.NewRat(-1, 3), big.NewRat(-1, 2)}, // -1/15
		{policy.Scale, big.NewRat(-10, 1), big.NewRat(-2, 1)},
	} {
		got, _ := bucket{tokens: c.before, atMicros: 7}.crossed(thirds, halves, c.rule, 7).(bucket)
		if got.tokens.Cmp(c.after) != 0 || got.atMicros != 7 {
			t.Errorf("%s became %s at %d, want %s at 7", c.before, got.tokens, got.atMicros, c.after)
		}
	}
}

func TestDebtHasNothingRemaining(t *testing.T) {
	t.Parallel()
	l := limit{capacity: tokens(10), rate: big.NewRat(1, 3), unit: big.NewRat(1, 3)}
	debt := bucket{tokens: big.NewRat(-5, 3)}
	if got := debt.remaining(l, 0); got != 0 {
		t.Errorf("%d tokens remain of a debt", got)
	}
	if got := debt.waitMicros(l, tokens(1), 0); got != 8 {
		t.Errorf("wait %d µs for one token from a debt of 5/3 at 1/3 per µs, want 8", got)
	}
}

func TestNoWaitOverflows(t *testing.T) {
	t.Parallel()
	const most = 1<<62 - 1
	l := limit{capacity: tokens(most), rate: big.NewRat(1, 1), unit: big.NewRat(1, 1)}
	debt := bucket{tokens: tokens(-most), atMicros: 100}
	if got := debt.resetMicros(l, 99); got != math.MaxInt64 {
		t.Errorf("full after %d µs, want %d", got, int64(math.MaxInt64))
	}
	if got := debt.resetMicros(l, 101); got != math.MaxInt64-2 {
		t.Errorf("full after %d µs, want %d", got, int64(math.MaxInt64-2))
	}
}
