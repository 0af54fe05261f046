package limiter

import (
	"context"
	"slices"

	"github.com/rationhq/ration/policy"
)

// Usage tells what one caller has left under every policy that limits him, as
// one claim that takes nothing. Errors are [*policy.Error], of reasons
// too-many-policies, store-unavailable, overloaded and internal.
func (l *Limiter) Usage(ctx context.Context, request *policy.Request) (policy.Usage, error) {
	s := l.takeSingle()
	set, err := l.complete(ctx, request, s, (*Limiter).prepareUsage)
	if err != nil {
		return policy.Usage{}, err
	}
	usage, err := l.usageOf(ctx, set, s)
	l.giveBack(s)
	return usage, err
}

// prepareUsage makes a call that peeks at every policy of a caller. It has no
// lane where there is none.
func (l *Limiter) prepareUsage(ctx context.Context, set *inForce, request *policy.Request, c *call, matched *policy.Matched) {
	if !c.begin(ctx, set) {
		return
	}
	if c.err = set.MatchUsage(request, matched); c.err != nil || len(matched.Checks) == 0 {
		return
	}
	c.claim = &claim{Claim: policy.Claim{Peek: true, Checks: slices.Clone(matched.Checks)}}
	c.queueIn(l.generalLaneOf(request, c.claim), set)
}

// usageOf is what the caller of a peek that is done is told. It is no decision
// and not counted as one.
func (l *Limiter) usageOf(ctx context.Context, set *inForce, s *single) (policy.Usage, error) {
	c := &s.call
	usage := policy.Usage{Missing: slices.Clone(s.matched.Skipped)}
	switch {
	case c.err != nil:
		return policy.Usage{}, c.problem(set, c.err)
	case c.again != nil:
		return policy.Usage{}, c.again
	case c.hasVerdict():
		decision, err := c.claim.verdict.Decision("", c.claim.Checks, l.find(ctx, set, c))
		if err != nil {
			return policy.Usage{}, err
		}
		usage.Parts, usage.AtMicros = decision.Detail.Parts, c.claim.verdict.AtMicros
	}
	usage.Parts = withBlocked(usage.Parts, s.matched.Blocked)
	return usage, nil
}
