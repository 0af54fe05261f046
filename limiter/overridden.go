package limiter

import (
	"slices"
	"strings"

	"github.com/rationhq/ration/policy"
)

// countOverridden counts what overrides exempt or block for the policies that
// do not answer the request; the one that does is counted with the decision.
func (f *inForce) countOverridden(matched *policy.Matched) {
	if len(matched.Exempt)+len(matched.Blocked) == 0 {
		return
	}
	answers := matched.Denying()
	if answers == nil && len(matched.Checks) == 0 {
		answers = matched.Unchecked()
	}
	for _, exempt := range matched.Exempt {
		if exempt != answers {
			f.counters[exempt].allowed[policy.FromPolicy].Inc()
		}
	}
	for _, blocked := range matched.Blocked {
		if blocked != answers {
			f.counters[blocked].decidedPart(&policy.DecisionPart{Policy: blocked}, policy.FromPolicy)
		}
	}
}

// withBlocked adds the parts of policies that block a caller to those that the
// store has told of, by id. A policy that exempts him has no part.
func withBlocked(parts []policy.DecisionPart, blocked []*policy.Installed) []policy.DecisionPart {
	for _, installed := range blocked {
		parts = append(parts, policy.DecisionPart{
			Policy: installed, RetryAfterMicros: policy.Never, ResetAfterMicros: policy.Never,
		})
	}
	slices.SortFunc(parts, func(a, b policy.DecisionPart) int { return strings.Compare(a.Policy.ID, b.Policy.ID) })
	return parts
}
