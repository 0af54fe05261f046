package simulate

import (
	"fmt"

	"github.com/rationhq/ration/policy"
)

// limitWords tells a limit in a line.
func limitWords(l *policy.Limit) string {
	switch l.Algorithm {
	case policy.TokenBucket:
		return fmt.Sprintf("%d at once, %s every %s s", l.Capacity, l.RefillTokens, l.RefillSeconds)
	case policy.FixedWindow:
		return fmt.Sprintf("%d in each window of %s s", l.Capacity, l.Span)
	default:
		return fmt.Sprintf("%d in any %s s", l.Capacity, l.Span)
	}
}
