package httpapi

import "github.com/rationhq/ration/policy"

// windowSeconds is the window of a limit to the nearest second: a bucket's is
// the time in which it fills. 0 when it has none, as concurrency, or one under
// a second, which the headers cannot say.
func windowSeconds(limit *policy.Limit) int64 {
	micros := limit.SpanMicros
	switch limit.Algorithm {
	case policy.TokenBucket:
		micros = tokensMicros(limit, limit.Capacity)
	case policy.Concurrency: // its span is the life of one slot
		return 0
	case policy.FixedWindow, policy.SlidingWindowCounter, policy.SlidingWindowLog:
	}
	if micros < microsPerSecond {
		return 0
	}
	return (micros + microsPerSecond/2) / microsPerSecond
}

// nextMicros is the wait until there is more than now: for a bucket one more
// whole token, else what was denied or, at the latest, everything.
func nextMicros(p *policy.DecisionPart) int64 {
	next := p.ResetAfterMicros
	if limit := &p.Policy.Spec.Limit; limit.Algorithm == policy.TokenBucket {
		// The bucket is full after that, one token stands at remaining+1, and the tokens
		// between take a known time. Rounding it down never promises early.
		next = max(0, next-tokensMicros(limit, limit.Capacity-p.Remaining-1))
	}
	if !p.Allowed && p.RetryAfterMicros != policy.Never {
		next = min(next, p.RetryAfterMicros) // one token never takes longer than the cost denied
	}
	return next
}

// tokensMicros is the time in which a bucket refills tokens, 0 to its
// capacity, rounded down. A policy's Capacity*D is below 2^62, so nothing
// overflows.
func tokensMicros(limit *policy.Limit, tokens int64) int64 {
	return tokens * limit.Rate.D / limit.Rate.N
}
