package storetest

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strconv"

	"github.com/rationhq/ration/policy"
)

// Bounds of a random history.
const (
	slotsMax     = 6   // policies; the odd ones are durable
	keysMax      = 5   // of each policy: few, so that they meet again
	asksMax      = 8   // of one batch
	callersMax   = 100 // of one counted ask
	forwardBits  = 47  // one move forward is below 2^47 µs, four and a half years
	backwardBits = 42  // one move back is below 2^42 µs, fifty days

	// The clock stays near enough to today for any database's timestamps.
	earliestMicros = epochMicros - 50*year
	latestMicros   = epochMicros + 2000*year
)

// limitEnd is the first number too large for n and for capacity·d.
const limitEnd = uint64(1) << 62

// history is a made-up life of a few policies: what is installed, asked and
// cleaned, and how the clock moves.
type history struct {
	seed  uint64
	steps []step
}

// step is one event of a history. It is data, so that a history can be
// printed, played again and cut down.
type step interface {
	fmt.Stringer
	play(g *game) *difference
	simpler() []step // variants that do less, none when there is nothing to leave out
}

// pace is what kind of history to make.
type pace struct {
	stepsBack     bool // the clock may step back
	cleansPercent int
}

// author makes up a history.
type author struct {
	random *rand.Rand
	pace   pace
	slots  [slotsMax]shape // what each slot's policy is at this point
}

// newHistory makes up a history of the given number of steps. The same seed
// gives the same history.
func newHistory(seed uint64, steps int, p pace) history {
	a := author{random: rand.New(rand.NewPCG(seed, 0)), pace: p}
	h := history{seed: seed, steps: make([]step, 0, steps)}
	for slot := range min(slotsMax, steps) {
		h.steps = append(h.steps, a.install(slot))
	}
	for len(h.steps) < steps {
		h.steps = append(h.steps, a.next())
	}
	return h
}

// next makes up one step.
func (a *author) next() step {
	percent := a.random.IntN(100)
	if percent < a.pace.cleansPercent {
		return clean{}
	}
	switch percent = a.random.IntN(100); {
	case percent < 60:
		return a.batch()
	case percent < 80:
		return a.move()
	case percent < 95:
		return followAdvice{offMicros: int64(a.random.IntN(3) - 1)}
	default:
		return a.install(a.random.IntN(slotsMax))
	}
}

// move makes up a step of the clock, of any order of magnitude.
func (a *author) move() step {
	if a.pace.stepsBack && a.random.IntN(8) == 0 {
		return moveClock{byMicros: -int64(a.magnitude(1, 1<<backwardBits))}
	}
	return moveClock{byMicros: int64(a.magnitude(1, 1<<forwardBits))}
}

// install makes up the next version of a slot's policy.
func (a *author) install(slot int) step {
	next := install{slot: slot, shape: a.shape()}
	next.wrongVersion = a.slots[slot].capacity > 0 && a.random.IntN(20) == 0 // never the first
	if !next.wrongVersion {
		a.slots[slot] = next.shape
	}
	return next
}

// batch makes up a call.
func (a *author) batch() step {
	call := decide{stale: a.random.IntN(50) == 0}
	parity := a.random.IntN(2) // a batch is of one durability
	taken := map[[2]int]bool{}
	for range 1 + a.random.IntN(asksMax) {
		slot, key := 2*a.random.IntN(slotsMax/2)+parity, a.random.IntN(keysMax)
		if taken[[2]int{slot, key}] {
			continue // no key occurs twice
		}
		taken[[2]int{slot, key}] = true
		call.asks = append(call.asks, ask{
			slot: slot, key: key, count: a.count(), cost: a.cost(a.slots[slot].capacity),
		})
	}
	return call
}

// count makes up how many callers ask.
func (a *author) count() int32 {
	switch a.random.IntN(4) {
	case 0:
		return 0
	case 1:
		return a.random.Int32N(callersMax)
	default:
		return 1
	}
}

// cost makes up a cost, with a liking for the edges of the capacity.
func (a *author) cost(capacity int64) int64 {
	switch a.random.IntN(10) {
	case 0:
		return policy.CostMax
	case 1:
		return min(capacity, policy.CostMax-1) + 1
	case 2:
		return max(1, capacity)
	case 3, 4:
		return max(1, capacity/(1+a.random.Int64N(5)))
	case 5, 6:
		return int64(a.magnitude(1, uint64(capacity)+1))
	default:
		return 1
	}
}

// shape is a token bucket in stored units: n/d tokens per microsecond.
type shape struct{ capacity, n, d int64 }

func (s shape) String() string {
	return fmt.Sprintf("capacity %d, %d/%d per µs", s.capacity, s.n, s.d)
}

// change is a policy change to the shape. refillTokens is n and refillSeconds
// is d microseconds, so that every n and d can be had.
func (s shape) change(d policy.Durability) (*policy.Change, error) {
	seconds := fmt.Sprintf("%d.%06d", s.d/second, s.d%second)
	return tokenBucket(d, strconv.FormatInt(s.capacity, 10), strconv.FormatInt(s.n, 10), seconds)
}

// shape makes up a limit: ordinary ones, ones anywhere in the permitted range
// and ones at its edges.
func (a *author) shape() shape {
	switch a.random.IntN(4) {
	case 0:
		edges := []shape{
			{capacity: math.MaxInt64 >> 1, n: math.MaxInt64 >> 1, d: 1},
			{capacity: math.MaxInt64 >> 1, n: 1, d: 1},
			{capacity: 1, n: math.MaxInt64 >> 1, d: math.MaxInt64>>1 - 1},
			{capacity: 1, n: 1, d: slowest},
			{capacity: int64(limitEnd-1) / slowest, n: 1, d: slowest},
			{capacity: 3, n: 1_000_003, d: 999_983 * second},
			{capacity: 1, n: 1, d: second},
		}
		return edges[a.random.IntN(len(edges))]
	case 1:
		d := a.magnitude(1, limitEnd)
		return shape{
			capacity: int64(a.magnitude(1, (limitEnd-1)/d+1)),
			n:        int64(a.magnitude((d+slowest-1)/slowest, limitEnd)),
			d:        int64(d),
		}
	default:
		periods := []int64{second, 3 * second, 7 * second, second / 10, 60 * second, day}
		return shape{
			capacity: 1 + a.random.Int64N(100),
			n:        1 + a.random.Int64N(20),
			d:        periods[a.random.IntN(len(periods))],
		}
	}
}

// slowest is the largest d for each n: one token in 366 days.
const slowest = 366 * 86_400 * 1_000_000

// magnitude is a number from low to below high whose number of digits is
// evenly spread. low is at least 1.
func (a *author) magnitude(low, high uint64) uint64 {
	length := bits.Len64(low)
	longest := bits.Len64(high - 1)
	length += a.random.IntN(longest - length + 1)
	from := max(low, uint64(1)<<(length-1))
	to := min(high, uint64(1)<<length)
	return from + a.random.Uint64N(to-from)
}
