package policy

import (
	"math/big"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// unitsMax bounds capacity·d, n and d: sums of two such figures stay within
// 64 bits, so no arithmetic of the stored functions can overflow.
const unitsMax = int64(1)<<62 - 1

// slowestRefillSeconds is the longest time that one token may take: 366 days.
// It keeps every wait of one token below 2^45 µs.
const slowestRefillSeconds = 366 * 24 * 60 * 60

// Algorithm is how a limit is kept.
type Algorithm uint8

// The algorithms.
const (
	TokenBucket          Algorithm = iota // refills continuously up to a capacity
	FixedWindow                           // counts in windows aligned to the epoch, in UTC
	SlidingWindowCounter                  // counts in such windows and weighs the one before; strict: counts in 60 segments
	SlidingWindowLog                      // remembers every charge for exactly the window
	Concurrency                           // holds slots until they are released or expire
)

// SegmentsPerWindow is how finely a strict sliding window counter counts.
const SegmentsPerWindow = 60

var algorithmNames = [...]string{
	"token_bucket", "fixed_window", "sliding_window_counter", "sliding_window_log", "concurrency",
}

// String gives the algorithm's name in policies.
func (a Algorithm) String() string { return algorithmNames[a] }

// Limit is how much a key may spend: a token bucket of Capacity tokens,
// refilled at RefillTokens/RefillSeconds; or Capacity tokens in a window of
// Span; or Capacity units of concurrency, in slots that live for Span.
type Limit struct {
	Algorithm     Algorithm
	Capacity      int64   // whole tokens, >= 1; called limit in windows and concurrency
	RefillTokens  Decimal // token buckets: > 0, exactly as written
	RefillSeconds Decimal // token buckets: > 0, exactly as written
	Rate          Rate    // token buckets: RefillTokens/RefillSeconds in stored units; Capacity*Rate.D < 2^62
	Span          Decimal // windowSeconds or ttlSeconds, exactly as written
	SpanMicros    int64   // the same in microseconds, 0 for token buckets
	Strict        bool    // a sliding window counter that is never above its limit in any trailing window
}

// Rate is a refill rate in lowest terms: N/D tokens per microsecond. A
// balance is stored in units of 1/D token, so each microsecond earns exactly
// N units and a token is exactly D units. 1 <= N < 2^62, 1 <= D < 2^62.
type Rate struct{ N, D int64 }

var limitMembers = members[Limit]{
	{name: "algorithm", required: true, read: func(r *reader, l *Limit, v jsontext.Value) {
		l.Algorithm = readRule[Algorithm](r, v, algorithmNames[:])
	}},
	{name: "capacity", required: true, read: func(r *reader, l *Limit, v jsontext.Value) { l.Capacity = r.positive(v, unitsMax) }},
	{name: "refillTokens", required: true, read: func(r *reader, l *Limit, v jsontext.Value) { l.RefillTokens = r.decimal(v) }},
	{name: "refillSeconds", required: true, read: func(r *reader, l *Limit, v jsontext.Value) { l.RefillSeconds = r.decimal(v) }},
}

// readLimit reads a policy's limit.
func readLimit(r *reader, change *Change, value jsontext.Value) {
	limit := &change.Spec.Limit
	if later := laterAlgorithm(value); later != "" {
		// Its other members are not known here either: one fault says it all.
		r.faultAt("algorithm", later+" is not available yet")
		return
	}
	faultsBefore := len(r.faults)
	readObject(r, value, limit, limitMembers)
	if len(r.faults) == faultsBefore {
		r.checkLimit(limit)
	}
}

// laterAlgorithm gives the algorithm of a limit that asks for one which is
// described and not available yet, else "".
func laterAlgorithm(limit jsontext.Value) string {
	if limit.Kind() != jsontext.KindBeginObject {
		return ""
	}
	for rest := inside(limit); ; {
		name, value, after, ok := cutMember(rest)
		if !ok {
			return ""
		}
		if string(unquote(name)) == "algorithm" && value.Kind() == jsontext.KindString {
			for _, later := range algorithmNames[TokenBucket+1:] {
				if string(unquote(value)) == later {
					return later
				}
			}
		}
		rest = after
	}
}

// checkLimit checks what no member can tell alone and works out the rate.
func (r *reader) checkLimit(limit *Limit) {
	perSecond := new(big.Rat).Quo(limit.RefillTokens.Rat(), limit.RefillSeconds.Rat())
	if perSecond.Cmp(big.NewRat(1, slowestRefillSeconds)) < 0 {
		r.faultAt("refillTokens", "must refill at least one token in 366 days")
		return
	}
	perMicro := new(big.Rat).Quo(perSecond, big.NewRat(1_000_000, 1)) // math/big keeps lowest terms
	n, d := perMicro.Num(), perMicro.Denom()
	units := big.NewInt(unitsMax)
	switch {
	case n.Cmp(units) > 0:
		r.faultAt("refillTokens", "is too large or too finely graded: the rate in lowest terms is "+
			n.String()+"/"+d.String()+" tokens per microsecond, whose numerator must be below 2^62")
		return
	case d.Cmp(units) > 0:
		r.faultAt("refillTokens", "is too finely graded: the rate in lowest terms is "+
			n.String()+"/"+d.String()+" tokens per microsecond, whose denominator must be below 2^62")
		return
	}
	limit.Rate = Rate{N: n.Int64(), D: d.Int64()}
	if capacityMax := unitsMax / limit.Rate.D; limit.Capacity > capacityMax {
		r.faultAt("capacity", "must be at most "+strconv.FormatInt(capacityMax, 10)+
			" with this refill rate, whose tokens are kept in parts of 1/"+strconv.FormatInt(limit.Rate.D, 10))
	}
}

// limit writes a limit's figures, exactly as they were given.
func (w *writer) limit(limit *Limit) {
	w.integer("capacity", limit.Capacity)
	w.literal("refillTokens", limit.RefillTokens.String())
	w.literal("refillSeconds", limit.RefillSeconds.String())
}
