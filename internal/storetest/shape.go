package storetest

import (
	"fmt"
	"math"
	"strconv"

	"github.com/rationhq/ration/policy"
)

// The slots of a history: one policy each. The first ones begin as token
// buckets, which both paths of a store decide; of the others there is one of
// each kind.
const (
	bucketSlots = 4 // the odd ones are durable
	slotsMax    = bucketSlots + len(windowKinds)
)

// Ends of what can be installed.
const (
	limitEnd  = uint64(1) << 62 // the first number too large for n, for capacity·d and for a limit
	weightEnd = uint64(1) << 61 // the first too large for a sliding window counter's limit times its window
	logMax    = 1000            // charges of a log
	liveMax   = 10_000          // slots of a key

	// slowest is the largest d for each n, one token in 366 days, and the
	// longest window.
	slowest = 366 * day
)

// shape is what a history says of a version. Algorithm, strictness,
// durability and the window are the kind, which says what state is kept.
type shape struct {
	algorithm  policy.Algorithm
	strict     bool
	durability policy.Durability
	afterLoss  policy.AfterLoss
	mode       policy.Mode
	capacity   int64
	n, d       int64 // token buckets: n/d tokens per microsecond
	spanMicros int64 // the window, or how long a slot lives
}

func (s shape) String() string {
	rate := fmt.Sprintf("%d in %d µs", s.capacity, s.spanMicros)
	if s.algorithm == policy.TokenBucket {
		rate = fmt.Sprintf("capacity %d, %d/%d per µs", s.capacity, s.n, s.d)
	}
	strict := ""
	if s.strict {
		strict = "strict "
	}
	return fmt.Sprintf("%s %s %s%s, %s, after a loss %s", s.durability, s.mode, strict, s.algorithm, rate, s.afterLoss)
}

// change is a policy change to the shape. For a token bucket refillTokens is n
// and refillSeconds is d microseconds, so that every n and d can be had.
func (s shape) change() (*policy.Change, error) {
	var limit string
	switch s.algorithm {
	case policy.TokenBucket:
		limit = bucketOf(s.capacity, strconv.FormatInt(s.n, 10), seconds(s.d))
	case policy.Concurrency:
		limit = concurrency(s.capacity, seconds(s.spanMicros))
	case policy.FixedWindow, policy.SlidingWindowCounter, policy.SlidingWindowLog:
		limit = window(s.algorithm, s.strict, s.capacity, seconds(s.spanMicros))
	}
	change, err := changeTo(s.durability, s.mode, limit)
	if err == nil {
		change.Spec.AfterLoss = s.afterLoss
	}
	return change, err
}

// sameKind says whether two shapes keep their state alike.
func (s shape) sameKind(other shape) bool {
	return s.algorithm == other.algorithm && s.strict == other.strict && s.durability == other.durability &&
		(s.spanMicros == other.spanMicros || s.algorithm == policy.Concurrency)
}

// firstKind makes up what a slot's first version keeps: among them there is one
// of each.
func (a *author) firstKind(slot int) shape {
	if slot < bucketSlots {
		return shape{durability: policy.Durability(slot % 2)}
	}
	made := windowKinds[slot-bucketSlots]
	made.durability = policy.Durability(a.random.IntN(2))
	made.spanMicros = a.span()
	return made
}

// windowKinds are all that is kept but token buckets.
var windowKinds = [...]shape{
	{algorithm: policy.FixedWindow},
	{algorithm: policy.SlidingWindowCounter},
	{algorithm: policy.SlidingWindowCounter, strict: true},
	{algorithm: policy.SlidingWindowLog},
	{algorithm: policy.Concurrency},
}

// kind makes up what a version keeps that begins anew.
func (a *author) kind() shape { return a.firstKind(a.random.IntN(slotsMax)) }

// span makes up a window: ordinary ones, and ones that 60 segments, seconds or
// days do not divide.
func (a *author) span() int64 {
	spans := []int64{second, 7 * second, 60 * second, day, millisecond, 999_983, 60*second + 1, slowest}
	if i := a.random.IntN(len(spans) + 2); i < len(spans) {
		return spans[i]
	}
	return int64(a.magnitude(uint64(millisecond), uint64(slowest)+1))
}

// shape makes up the next version of a slot's policy.
func (a *author) shape(last shape) shape {
	next := last
	next.mode = policy.Enforce
	if a.random.IntN(5) == 0 {
		next.mode = policy.Shadow
	}
	if next.afterLoss = policy.LossIdle; next.durability == policy.Fast {
		next.afterLoss = policy.AfterLoss(a.random.IntN(2))
	}
	if next.algorithm == policy.TokenBucket {
		bucket := a.bucket()
		next.capacity, next.n, next.d = bucket.capacity, bucket.n, bucket.d
		return next
	}
	if next.algorithm == policy.Concurrency {
		next.spanMicros = a.span() // slots that are live keep theirs
	}
	next.capacity = 1 + a.random.Int64N(20)
	if a.random.IntN(4) == 0 {
		next.capacity = int64(a.magnitude(1, limitsEnd(next)))
	}
	if a.random.IntN(16) == 0 {
		next.capacity = int64(limitsEnd(next)) - 1
	}
	return next
}

// limitsEnd is the first limit too large for a window.
func limitsEnd(s shape) uint64 {
	switch {
	case s.algorithm == policy.SlidingWindowCounter:
		return (weightEnd-1)/uint64(s.spanMicros) + 1
	case s.algorithm == policy.SlidingWindowLog:
		return logMax + 1
	case s.algorithm == policy.Concurrency:
		return liveMax + 1
	default:
		return limitEnd
	}
}

// bucket makes up a token bucket: ordinary ones, ones anywhere in the permitted
// range and ones at its edges.
func (a *author) bucket() shape {
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
			n:        int64(a.magnitude((d+uint64(slowest)-1)/uint64(slowest), limitEnd)),
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
