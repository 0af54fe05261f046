package memstore

import (
	"math/big"
	"slices"
	"sort"

	"github.com/rationhq/ration/policy"
)

// charge is tokens that count against a limit for a time.
type charge struct {
	mark   int64 // the instant they stand at, see limit.mark
	tokens int64

	// Of a slot: its id and how long it lives from each renewal on. Every slot
	// stands for itself; other charges of one mark are one.
	slot policy.SlotID
	ttl  int64
}

// charges is what a key of any window, log or set of slots was charged, in
// the order of charging. It is a value: nothing is changed in place.
//
// All figures follow from how much of a charge counts at which instant: what
// is used at an instant is the sum, and as nothing but a charge raises it, the
// first instant at which something fits is found by bisection.
type charges []charge

// aligned says whether charges are counted in windows aligned to the epoch.
func (l limit) aligned() bool {
	return l.algorithm == policy.FixedWindow || l.algorithm == policy.SlidingWindowCounter && !l.strict
}

// window is the beginning of the window that an instant falls into. No window
// of a key lies before its newest one, whatever the clock says.
func (l limit) window(nowMicros, newest int64) int64 {
	return max(newest, nowMicros-nowMicros%l.span)
}

// mark is the instant that a charge is given: the beginning of its window, the
// end of its segment, the moment itself in a log, or a slot's last.
func (l limit) mark(nowMicros, newest int64) int64 {
	switch {
	case l.aligned():
		return l.window(nowMicros, newest)
	case l.algorithm == policy.Concurrency:
		return nowMicros + l.span
	case l.strict:
		segment := (l.span + policy.SegmentsPerWindow - 1) / policy.SegmentsPerWindow
		return max(newest, nowMicros-nowMicros%segment+segment)
	default:
		return max(newest, nowMicros)
	}
}

// weight is how much of a charge counts at an instant, in parts of the span:
// 0 to all of it.
func (l limit) weight(mark, nowMicros, newest int64) int64 {
	var counts bool
	switch {
	case l.aligned():
		window := l.window(nowMicros, newest)
		if l.algorithm == policy.SlidingWindowCounter && mark == window-l.span {
			return l.span - max(0, nowMicros-window) // what the window before still weighs
		}
		counts = mark == window
	case l.algorithm == policy.Concurrency:
		counts = mark > nowMicros
	default:
		counts = mark > nowMicros-l.span
	}
	if counts {
		return l.span
	}
	return 0
}

// newest is the latest mark, 0 when there is none.
func (c charges) newest() int64 {
	latest := int64(0)
	for _, each := range c {
		latest = max(latest, each.mark)
	}
	return latest
}

// used is how much of the limit is taken at an instant.
func (c charges) used(l limit, nowMicros int64) *big.Rat {
	newest, whole, used := c.newest(), int64(0), new(big.Rat)
	for _, each := range c {
		switch weight := l.weight(each.mark, nowMicros, newest); weight {
		case 0:
		case l.span:
			whole += each.tokens // at most twice what the limit ever was
		default:
			part := big.NewRat(weight, l.span)
			used.Add(used, part.Mul(part, tokens(each.tokens)))
		}
	}
	return used.Add(used, tokens(whole))
}

// until is how long after an instant what is used is first at most so much,
// if nothing more is charged.
func (c charges) until(l limit, atMost *big.Rat, nowMicros int64) int64 {
	if c.used(l, nowMicros).Cmp(atMost) <= 0 {
		return 0
	}
	forgotten := c.newest() + 2*l.span // by then nothing counts
	wait := sort.Search(int(max(0, forgotten-nowMicros)), func(elapsed int) bool {
		return c.used(l, nowMicros+int64(elapsed)).Cmp(atMost) <= 0
	})
	return int64(wait)
}

func (c charges) waitMicros(l limit, cost *big.Rat, nowMicros int64) int64 {
	return c.until(l, new(big.Rat).Sub(l.capacity, cost), nowMicros)
}

func (c charges) resetMicros(l limit, nowMicros int64) int64 {
	return c.until(l, new(big.Rat), nowMicros)
}

func (c charges) remaining(l limit, nowMicros int64) int64 {
	free := new(big.Rat).Sub(l.capacity, c.used(l, nowMicros))
	return max(0, floor(free).Int64())
}

// charged adds a charge and forgets the ones that count no more.
func (c charges) charged(l limit, cost, nowMicros int64) (after state, mark int64) {
	mark = l.mark(nowMicros, c.newest())
	return c.counting(l, nowMicros, mark).with(mark, cost), mark
}

// counting is the charges that count at an instant, or would if they were of
// more than nothing.
func (c charges) counting(l limit, nowMicros, newest int64) charges {
	var counting charges
	for _, each := range c {
		if l.weight(each.mark, nowMicros, newest) > 0 {
			counting = append(counting, each)
		}
	}
	return counting
}

// with adds tokens at a mark.
func (c charges) with(mark, tokens int64) charges {
	c = slices.Clone(c)
	if i := c.at(mark); i >= 0 {
		c[i].tokens += tokens
		return c
	}
	return append(c, charge{mark: mark, tokens: tokens})
}

// at finds the charge of a mark, -1 when there is none.
func (c charges) at(mark int64) int {
	return slices.IndexFunc(c, func(each charge) bool { return each.mark == mark })
}

// corrected changes the window or entry of the charge, as long as it counts.
// An extra charge raises what is counted together to at most twice the limit.
func (c charges) corrected(l limit, mark, charged, actual, nowMicros int64) (after state, applied, clamped bool) {
	newest := c.newest()
	counting := c.counting(l, nowMicros, newest)
	if l.aligned() {
		counting = counting.with(l.window(nowMicros, newest), 0) // its window is the newest from now on
	}
	if l.weight(mark, nowMicros, newest) == 0 || !l.aligned() && counting.at(mark) < 0 {
		return c, false, false
	}
	together := int64(0)
	for _, each := range counting {
		if !l.aligned() || each.mark == mark {
			together += each.tokens
		}
	}
	extra := actual - charged
	if room := max(0, 2*l.capacity.Num().Int64()-together); extra > room {
		extra, clamped = room, true
	}
	made := counting.with(mark, extra)
	i := made.at(mark)
	made[i].tokens = max(0, made[i].tokens)
	if made[i].tokens == 0 && !l.aligned() {
		made = slices.Delete(made, i, i+1) // an entry of nothing is none; a window stays the newest
	}
	return made, true, clamped
}

// crossed keeps the counts as they are: they are compared with the new limit.
func (c charges) crossed(_, _ limit, _ policy.Balances, _ int64) state { return c }

// same says whether no charge counts any more, and one made now would stand
// where it would if there had been none.
func (c charges) same(idle state, l limit, nowMicros int64) bool {
	newest, o := c.newest(), idle.(charges) //nolint:forcetypeassert // states of one limit are of one kind
	return len(c.counting(l, nowMicros, newest)) == 0 && o.used(l, nowMicros).Sign() == 0 &&
		l.mark(nowMicros, newest) == l.mark(nowMicros, o.newest())
}
