package policy

import (
	"math"
	"testing"
)

func TestInstantsEndWithTheCalendar(t *testing.T) {
	t.Parallel()
	const now = int64(1_767_323_045_000_000)
	for _, c := range []struct{ at, wait, want int64 }{
		{now, 0, now},
		{now, 250_000, now + 250_000},
		{now, InstantMicrosMax - now, InstantMicrosMax},
		{now, InstantMicrosMax - now + 1, InstantMicrosMax},
		{now, math.MaxInt64, InstantMicrosMax},
		{InstantMicrosMax + 1, 0, InstantMicrosMax},
		{math.MaxInt64, math.MaxInt64, InstantMicrosMax},
	} {
		if got := InstantAfter(c.at, c.wait); got != c.want {
			t.Errorf("%d µs after %d: %d, want %d", c.wait, c.at, got, c.want)
		}
	}
	deep := Decision{AtMicros: now, ResetAfterMicros: math.MaxInt64 - 5}
	if got := deep.ResetAtMicros(); got != InstantMicrosMax {
		t.Errorf("a key in deep debt is full at %d, want the end of the calendar", got)
	}
	if got := (&Decision{ResetAfterMicros: 5}).ResetAtMicros(); got != 0 {
		t.Errorf("full at %d without a clock", got)
	}
}
