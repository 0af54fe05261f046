package simulate

import (
	"math"

	"github.com/rationhq/ration/policy"
)

// state is what one key holds. It follows the clock that it is given, and
// moves back for none.
type state interface {
	// ask charges a cost of at most the limit and answers 0, or changes nothing
	// and answers how long after the instant, in microseconds, the same cost
	// would pass if nothing else happened.
	ask(l *policy.Limit, cost, nowMicros int64) (waitMicros int64)
}

// newState is a key that was never charged.
func newState(l *policy.Limit) state {
	switch l.Algorithm {
	case policy.FixedWindow:
		return new(window)
	case policy.SlidingWindowCounter:
		if !l.Strict {
			return new(slidingWindow)
		}
		return new(log)
	case policy.SlidingWindowLog:
		return new(log)
	default:
		return &bucket{units: l.Capacity * l.Rate.D}
	}
}

// bucket is a token bucket, in units of 1/Rate.D token.
type bucket struct{ units, atMicros int64 }

func (b *bucket) ask(l *policy.Limit, cost, nowMicros int64) int64 {
	full, want := l.Capacity*l.Rate.D, cost*l.Rate.D
	units := b.units
	switch elapsed := nowMicros - b.atMicros; {
	case elapsed <= 0: // the clock is behind: nothing is earned
	case elapsed > (full-units)/l.Rate.N:
		units = full
	default:
		units += elapsed * l.Rate.N
	}
	if units < want {
		return max(0, b.atMicros-nowMicros) + ceilDiv(want-units, l.Rate.N)
	}
	b.units, b.atMicros = units-want, max(b.atMicros, nowMicros)
	return 0
}

// window is a fixed window.
type window struct{ beginMicros, used int64 }

func (w *window) ask(l *policy.Limit, cost, nowMicros int64) int64 {
	begin, used := max(w.beginMicros, nowMicros-nowMicros%l.SpanMicros), w.used
	if begin > w.beginMicros {
		used = 0
	}
	if cost > l.Capacity-used {
		return begin + l.SpanMicros - nowMicros
	}
	w.beginMicros, w.used = begin, used+cost
	return 0
}

// slidingWindow is a sliding window counter that weighs the window before.
type slidingWindow struct{ beginMicros, used, before int64 }

func (w *slidingWindow) ask(l *policy.Limit, cost, nowMicros int64) int64 {
	span := l.SpanMicros
	at := *w
	if at.beginMicros = max(w.beginMicros, nowMicros-nowMicros%span); at.beginMicros > w.beginMicros {
		at.used, at.before = 0, 0
		if at.beginMicros == w.beginMicros+span {
			at.before = w.used
		}
	}
	elapsed := max(0, nowMicros-at.beginMicros)
	if at.before*(span-elapsed)+(at.used+cost)*span <= l.Capacity*span {
		at.used += cost
		*w = at
		return 0
	}
	if room := l.Capacity - at.used - cost; room >= 0 {
		return at.beginMicros + forgotten(at.before, room, span) - nowMicros
	}
	return at.beginMicros + span + forgotten(at.used, l.Capacity-cost, span) - nowMicros
}

// forgotten is how long into a window what was used in the one before, which
// is more than room, weighs more than it.
func forgotten(before, room, span int64) int64 { return span - room*span/before }

// log is every charge by itself, or by the end of its segment where a strict
// counter counts.
type log struct {
	entries []entry // ascending
	sum     int64   // of all entries
}

type entry struct{ mark, tokens int64 }

func (g *log) ask(l *policy.Limit, cost, nowMicros int64) int64 {
	past, used := 0, g.sum
	for past < len(g.entries) && g.entries[past].mark <= nowMicros-l.SpanMicros {
		used -= g.entries[past].tokens
		past++
	}
	if cost > l.Capacity-used {
		i := past - 1
		for cost > l.Capacity-used {
			i++
			used -= g.entries[i].tokens
		}
		return g.entries[i].mark + l.SpanMicros - nowMicros
	}
	mark := nowMicros
	if l.Strict {
		segment := ceilDiv(l.SpanMicros, policy.SegmentsPerWindow)
		mark += segment - nowMicros%segment
	}
	if last := len(g.entries) - 1; last >= 0 {
		mark = max(mark, g.entries[last].mark)
	}
	g.entries, g.sum = g.entries[past:], used
	g.add(entry{mark: mark, tokens: cost})
	return 0
}

func (g *log) add(e entry) {
	g.sum += e.tokens
	if last := len(g.entries) - 1; last >= 0 && g.entries[last].mark == e.mark {
		g.entries[last].tokens += e.tokens
		return
	}
	g.entries = append(g.entries, e)
}

// ceilDiv is a/b rounded up, for a >= 0 and b > 0.
func ceilDiv(a, b int64) int64 {
	quotient := a / b
	if a%b > 0 {
		quotient++
	}
	return quotient
}

// never is the wait of a cost above the limit, longer than every other.
const never = math.MaxInt64
