package limiter

import (
	"context"

	"github.com/rationhq/ration/policy"
)

// outcome is what the caller of a call that is done is told; it is counted.
func (l *Limiter) outcome(ctx context.Context, set *inForce, request *policy.Request, c *call) (policy.Decision, error) {
	switch {
	case c.err != nil:
		return policy.Decision{}, c.problem(set, c.err)
	case c.again != nil:
		return policy.Decision{}, c.again
	case c.hasVerdict():
		return l.verdictOf(ctx, set, request, c)
	}
	set.counters[c.decision.Policy].decided(&c.decision)
	return c.decision, nil
}

// verdictOf makes a verdict of the general path a decision.
func (l *Limiter) verdictOf(ctx context.Context, set *inForce, request *policy.Request, c *call) (policy.Decision, error) {
	decision, err := c.claim.verdict.Decision(request.OperationID, c.claim.Checks, l.find(ctx, set, c))
	if err != nil {
		return policy.Decision{}, err
	}
	if decision.Source == policy.FromStore && !c.claim.Peek {
		l.shadows.note(set, request, c.claim.Checks, &decision)
	}
	for i := range decision.Detail.Parts {
		part := &decision.Detail.Parts[i]
		set.countersOf(part.Policy).decidedPart(part, decision.Source)
	}
	return decision, nil
}

// find gives the versions that decided a replay and are not among the checks
// of the repetition. Those that are not in force any more are the store's to
// tell, all at once, within the caller's deadline.
func (l *Limiter) find(ctx context.Context, set *inForce, c *call) policy.Find {
	var stored policy.Find
	return func(number int32, version int) (*policy.Installed, error) {
		if known := set.numbered[number]; known != nil && known.Version == version {
			return known, nil
		}
		if stored == nil {
			ctx, cancel := context.WithDeadline(ctx, c.deadline)
			defer cancel()
			var err error
			if stored, err = l.policies.source.Installed(ctx, c.claim.verdict.Parts); err != nil {
				return nil, err
			}
		}
		return stored(number, version)
	}
}
