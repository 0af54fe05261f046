package policy

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// unitsMax bounds capacity·d, n and d: sums of two such figures stay within
// 64 bits, so no arithmetic of the stored functions can overflow. It bounds
// the limit of every other algorithm too, which is kept in whole tokens.
const unitsMax = int64(1)<<62 - 1

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
	SpanMicros    int64   // the same in microseconds, 1 ms to 366 days; 0 for token buckets
	Strict        bool    // a sliding window counter that is never above its limit in any trailing window
}

// limitDraft is a limit as read, before its members are compared.
type limitDraft struct {
	Limit

	known bool // the algorithm was given and exists
}

var limitMembers = members[limitDraft]{
	{name: "algorithm", required: true, read: func(r *reader, d *limitDraft, v jsontext.Value) {
		faultsBefore := len(r.faults)
		d.Algorithm = readRule[Algorithm](r, v, algorithmNames[:])
		d.known = len(r.faults) == faultsBefore
	}},
	{name: "capacity", read: func(r *reader, d *limitDraft, v jsontext.Value) { d.Capacity = r.positive(v, unitsMax) }},
	{name: "refillTokens", read: func(r *reader, d *limitDraft, v jsontext.Value) { d.RefillTokens = r.decimal(v) }},
	{name: "refillSeconds", read: func(r *reader, d *limitDraft, v jsontext.Value) { d.RefillSeconds = r.decimal(v) }},
	{name: "limit", read: func(r *reader, d *limitDraft, v jsontext.Value) { d.Capacity = r.positive(v, unitsMax) }},
	{name: "windowSeconds", read: readSpan},
	{name: "ttlSeconds", read: readSpan},
	{name: "strict", read: func(r *reader, d *limitDraft, v jsontext.Value) { d.Strict = r.boolean(v) }},
}

// strictMember is the only member that a limit may leave out.
const strictMember = "strict"

// limitTakes lists the members that each algorithm takes beside its name.
var limitTakes = [...][]string{
	TokenBucket:          {"capacity", "refillTokens", "refillSeconds"},
	FixedWindow:          {"limit", "windowSeconds"},
	SlidingWindowCounter: {"limit", "windowSeconds", strictMember},
	SlidingWindowLog:     {"limit", "windowSeconds"},
	Concurrency:          {"limit", "ttlSeconds"},
}

// capacityMember is what the algorithm calls a limit's capacity.
func (a Algorithm) capacityMember() string { return limitTakes[a][0] }

// readLimit reads a policy's limit.
func readLimit(r *reader, change *Change, value jsontext.Value) {
	var draft limitDraft
	faultsBefore := len(r.faults)
	found := readObject(r, value, &draft, limitMembers)
	if draft.known {
		r.checkTaken(draft.Algorithm, found)
	}
	if len(r.faults) > faultsBefore {
		return
	}
	if draft.Algorithm == TokenBucket {
		r.checkRate(&draft.Limit)
	} else {
		r.checkWindow(&draft.Limit)
	}
	change.Spec.Limit = draft.Limit
}

// checkTaken checks that a limit has the members of its algorithm, and those
// only.
func (r *reader) checkTaken(algorithm Algorithm, found seen) {
	for _, member := range limitMembers {
		has := limitMembers.has(found, member.name)
		switch takes := slices.Contains(limitTakes[algorithm], member.name); {
		case takes && !has && member.name != strictMember:
			r.faultFormAt(member.name, "is required")
		case !takes && has && !member.required:
			r.faultAt(member.name, "has no meaning for "+algorithm.String())
		}
	}
}

// JSON gives a limit as it stands in the stored form of a policy.
func (l *Limit) JSON() []byte {
	var w writer
	w.open("", '{')
	w.text("algorithm", l.Algorithm.String())
	w.limit(l)
	w.close('}')
	return w.out
}

// limit writes a limit's figures, exactly as they were given.
func (w *writer) limit(limit *Limit) {
	w.integer(limit.Algorithm.capacityMember(), limit.Capacity)
	switch limit.Algorithm {
	case TokenBucket:
		w.literal("refillTokens", limit.RefillTokens.String())
		w.literal("refillSeconds", limit.RefillSeconds.String())
	case FixedWindow, SlidingWindowLog:
		w.literal("windowSeconds", limit.Span.String())
	case SlidingWindowCounter:
		w.literal("windowSeconds", limit.Span.String())
		w.literal(strictMember, strconv.FormatBool(limit.Strict))
	case Concurrency:
		w.literal("ttlSeconds", limit.Span.String())
	}
}
