package limiter

import (
	"context"
	"time"

	"github.com/rationhq/ration/policy"
)

// prepare matches a request and makes it a call. Its lane is nil when there is
// nothing to send: the call is done, by the policies alone or by an error.
func (l *Limiter) prepare(ctx context.Context, set *inForce, request *policy.Request, c *call, matched *policy.Matched) {
	c.lane, c.err, c.again = nil, nil, nil
	c.state.Store(done)
	c.queuedAt = time.Now()
	switch {
	case set == nil:
		c.err = errNoPolicies()
		return
	case ctx.Err() != nil || !c.queuedAt.Before(c.deadline):
		c.err = errNotSent()
		return
	case request.OperationID != "":
		c.err = errNotYet("Operation ids are not available yet; nothing was decided.")
		return
	}
	c.err = set.Match(request, matched)
	for _, skipped := range matched.Skipped {
		set.counters[skipped.Policy].skipped[skipped.Attribute].Inc()
	}
	switch {
	case c.err != nil:
	case set.behind(request, matched):
		c.again = errPolicyBehind()
	case len(matched.Checks) == 0:
		c.decision = disabledBy(matched.Disabled)
	case len(matched.Checks) > 1:
		c.err = errNotYet("Several policies match this request, which is not available yet; nothing was decided.")
	default:
		c.check = matched.Checks[0]
		c.peek = request.Peek
		c.generation = set.Generation()
		c.lane = l.laneOf(&c.check)
		c.state.Store(queued)
	}
}

// behind says whether a request requires a newer version than the one in force
// here of the policy that it names, else of the one that it matches.
func (f *inForce) behind(request *policy.Request, matched *policy.Matched) bool {
	if !request.RequirePolicyVersion {
		return false
	}
	required := matched.Disabled
	if len(matched.Checks) > 0 {
		required = matched.Checks[0].Policy
	}
	if request.Policy != "" {
		named, found := f.Lookup(request.Policy)
		if !found {
			return true
		}
		required = named
	}
	return required.Version < request.PolicyVersion
}

// disabledBy decides a request that only disabled policies match.
func disabledBy(off *policy.Installed) policy.Decision {
	return policy.Decision{Policy: off, Allowed: true, Remaining: off.Spec.Limit.Capacity, Source: policy.FromPolicy}
}

func errNoPolicies() error {
	return &policy.Error{
		Code: policy.CodeUnavailable, Reason: policy.ReasonStoreUnavailable,
		Detail: "No policies are loaded yet.",
	}
}

func errNotYet(detail string) error {
	return &policy.Error{Code: policy.CodeNotYet, Reason: policy.ReasonNotYet, Detail: detail}
}

func errPolicyBehind() error {
	return &policy.Error{
		Code: policy.CodeConflict, Reason: policy.ReasonPolicyBehind,
		Detail: "The required policy version is not in force yet.",
	}
}

func errOverloaded() error {
	return &policy.Error{
		Code: policy.CodeOverloaded, Reason: policy.ReasonOverloaded,
		Detail: "No further request can wait for the store now; nothing was decided or charged.",
	}
}

// errStale answers who was matched under a policy set that is not the store's.
func errStale() error {
	return &policy.Error{
		Code: policy.CodeUnavailable, Reason: policy.ReasonStoreUnavailable,
		Detail: "The policies changed while this was decided; nothing was charged.",
	}
}
