package storetest

import (
	"fmt"
	"math/bits"
	"math/rand/v2"

	"github.com/rationhq/ration/policy"
)

// Bounds of a random history.
const (
	keysMax      = 5   // of each policy: few, so that they meet again
	asksMax      = 8   // of one batch
	callersMax   = 100 // of one counted ask
	claimsMax    = 8   // of one call
	checksMax    = 5   // of one claim
	forwardBits  = 47  // one move forward is below 2^47 µs, four and a half years
	backwardBits = 42  // one move back is below 2^42 µs, fifty days

	// The clock stays near enough to today for any database's timestamps.
	earliestMicros = epochMicros - 50*year
	latestMicros   = epochMicros + 2000*year
)

// history is a made-up life of a few policies of every kind: what is
// installed, asked, settled, released, cleaned and lost, and how the clock
// moves.
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
	operations    bool // claims may have operation ids, which are settled
	cleansPercent int
}

// author makes up a history.
type author struct {
	random     *rand.Rand
	pace       pace
	slots      [slotsMax]shape // what each slot's policy is at this point
	gone       [slotsMax]bool  // and whether it was deleted
	operations []claim         // by the number of the operation id, from 1: as first asked
	settled    settle          // the last one
}

// newHistory makes up a history of the given number of steps. The same seed
// gives the same history.
func newHistory(seed uint64, steps int, p pace) history {
	a := author{random: rand.New(rand.NewPCG(seed, 0)), pace: p}
	h := history{seed: seed, steps: make([]step, 0, steps)}
	for slot := range a.slots {
		a.slots[slot] = a.firstKind(slot)
	}
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
	case percent < 25:
		return a.batch()
	case percent < 54:
		return a.call()
	case percent < 61:
		return a.settle()
	case percent < 67:
		return a.endOrRenew()
	case percent < 81:
		return a.move()
	case percent < 92:
		return followAdvice{offMicros: int64(a.random.IntN(3) - 1)}
	case percent < 93:
		return lose{}
	default:
		return a.change(a.random.IntN(slotsMax))
	}
}

// move makes up a step of the clock, of any order of magnitude.
func (a *author) move() step {
	if a.pace.stepsBack && a.random.IntN(8) == 0 {
		return moveClock{byMicros: -int64(a.magnitude(1, 1<<backwardBits))}
	}
	return moveClock{byMicros: int64(a.magnitude(1, 1<<forwardBits))}
}

// batch makes up a call on token buckets of one durability.
func (a *author) batch() step {
	call := decide{durability: policy.Durability(a.random.IntN(2)), stale: a.random.IntN(50) == 0}
	buckets := a.buckets(call.durability)
	if len(buckets) == 0 {
		return a.call()
	}
	taken := map[[2]int]bool{}
	for range 1 + a.random.IntN(asksMax) {
		slot, key := buckets[a.random.IntN(len(buckets))], a.random.IntN(keysMax)
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

// buckets are the slots of token buckets of a durability.
func (a *author) buckets(durability policy.Durability) (slots []int) {
	for slot, s := range a.slots {
		if !a.gone[slot] && s.algorithm == policy.TokenBucket && s.durability == durability {
			slots = append(slots, slot)
		}
	}
	return slots
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
