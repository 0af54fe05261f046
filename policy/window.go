package policy

import (
	"math/big"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a window, or of the life of a slot.
const (
	spanMicrosMin = 1_000                                 // below a millisecond a round trip takes longer than the window
	spanMicrosMax = 366 * 24 * 60 * 60 * int64(1_000_000) // a year's quota, below 2^45
)

// Bounds of a limit that is not a bucket's.
const (
	logLimitMax   = 1000   // every charge is an entry that each decision reads
	slotsLimitMax = 10_000 // every slot may be a row that each decision counts

	// weightMax bounds limit·window of a sliding window counter, which adds up
	// two windows' counts weighed by their shares of one.
	weightMax = int64(1)<<61 - 1
)

// readSpan reads windowSeconds or ttlSeconds.
func readSpan(r *reader, draft *limitDraft, value jsontext.Value) {
	seconds := r.decimal(value)
	if seconds == (Decimal{}) {
		return // the fault is noted
	}
	micros := new(big.Rat).Mul(seconds.Rat(), big.NewRat(1_000_000, 1))
	switch {
	case micros.Cmp(big.NewRat(spanMicrosMin, 1)) < 0:
		r.fault("must be at least 0.001, a millisecond")
	case micros.Cmp(big.NewRat(spanMicrosMax, 1)) > 0:
		r.fault("must be at most 31622400, which is 366 days")
	case !micros.IsInt():
		r.fault("must be whole microseconds, at most six decimals")
	default:
		draft.Span, draft.SpanMicros = seconds, micros.Num().Int64()
	}
}

// checkWindow checks what no member of a window can tell alone.
func (r *reader) checkWindow(limit *Limit) {
	switch limit.Algorithm {
	case SlidingWindowCounter:
		if limitMax := weightMax / limit.SpanMicros; limit.Capacity > limitMax {
			r.faultAt("limit", "must be at most "+strconv.FormatInt(limitMax, 10)+" in a window of this length, whose counts are weighed by the microsecond")
		}
	case SlidingWindowLog:
		if limit.Capacity > logLimitMax {
			r.faultAt("limit", "must be at most "+strconv.Itoa(logLimitMax)+": every charge is remembered by itself")
		}
	case Concurrency:
		if limit.Capacity > slotsLimitMax {
			r.faultAt("limit", "must be at most "+strconv.Itoa(slotsLimitMax)+": every slot is counted by itself")
		}
	case TokenBucket, FixedWindow: // nothing to compare
	}
}
