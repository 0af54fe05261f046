package policy

import "fmt"

// String tells the limit in a few words.
func (l *Limit) String() string {
	switch l.Algorithm {
	case TokenBucket:
		return fmt.Sprintf("%d at once, %s every %s s", l.Capacity, l.RefillTokens, l.RefillSeconds)
	case FixedWindow:
		return fmt.Sprintf("%d in each %s s", l.Capacity, l.Span)
	case SlidingWindowCounter:
		if !l.Strict {
			return fmt.Sprintf("about %d in any %s s", l.Capacity, l.Span)
		}
	case Concurrency:
		return fmt.Sprintf("%d at a time, %s s each", l.Capacity, l.Span)
	case SlidingWindowLog:
	}
	return fmt.Sprintf("%d in any %s s", l.Capacity, l.Span)
}
