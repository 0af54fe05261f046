package limiter

import (
	"context"
	"slices"

	"github.com/rationhq/ration/policy"
)

// Explain says how a request would fare and why, with the balances that it
// would meet, as one claim that takes nothing. Of the policies that do not
// match only the one named by only is told of, unless that is "". Errors are
// [*policy.Error], of reasons store-unavailable, overloaded and internal.
func (l *Limiter) Explain(ctx context.Context, request *policy.Request, only string) (*policy.Explanation, error) {
	var explanation *policy.Explanation
	prepare := func(l *Limiter, ctx context.Context, set *inForce, request *policy.Request, c *call, matched *policy.Matched) {
		if !c.begin(ctx, set) {
			return
		}
		if explanation = set.Explain(request, only, matched); len(matched.Checks) == 0 {
			return
		}
		c.claim = &claim{Claim: policy.Claim{Peek: true, Checks: slices.Clone(matched.Checks)}}
		c.queueIn(l.generalLaneOf(request, c.claim), set)
	}
	s := l.takeSingle()
	set, err := l.complete(ctx, request, s, prepare)
	if err != nil {
		return nil, err
	}
	usage, err := l.usageOf(ctx, set, s)
	l.giveBack(s)
	if err != nil {
		return nil, err
	}
	explanation.Seen(&usage)
	return explanation, nil
}

// Review warns of what a policy, put under id, would mean together with those
// in force here.
func (l *Limiter) Review(id string, spec *policy.Spec) []policy.Warning {
	set := l.policies.current.Load()
	if set == nil {
		return nil
	}
	return set.Set.Review(id, spec)
}
