package limiter

import (
	"errors"
	"time"

	"github.com/rationhq/ration/policy"
)

// prepare matches a request and makes it a call, ready to be queued. settled
// says that the policies alone decide it: call.decision is the answer.
func (l *Limiter) prepare(
	set *inForce, request *policy.Request, c *call, matched *policy.Matched, gone <-chan struct{},
) (settled bool, err error) {
	if set == nil {
		return false, &policy.Error{Code: policy.CodeUnavailable, Reason: policy.ReasonStoreUnavailable,
			Detail: "no policies are loaded yet"}
	}
	if request.OperationID != "" {
		return false, notYet("operation ids are not available yet; nothing was decided")
	}
	err = set.Match(request, matched)
	for _, skipped := range matched.Skipped {
		set.counters[skipped.Policy].skipped[skipped.Attribute].Inc()
	}
	if err != nil {
		return false, err
	}
	c.state.Store(queued)
	c.err, c.stale = nil, false
	switch len(matched.Checks) {
	case 0:
		c.decision = disabledBy(matched.Disabled)
		return true, nil
	case 1:
	default:
		return false, notYet("several policies match this request, which is not available yet; nothing was decided")
	}
	c.check = matched.Checks[0]
	if behind(request, c.check.Policy) {
		// This instance may be the one that is behind: look once, and match again.
		if l.policies.other(set.Generation(), c.deadline, gone) {
			c.stale = true
			return true, nil
		}
		return false, &policy.Error{Code: policy.CodeConflict, Reason: policy.ReasonPolicyBehind,
			Detail: "the required policy version is not in force yet"}
	}
	c.peek = request.Peek
	c.generation = set.Generation()
	c.queuedAt = time.Now()
	return false, nil
}

// disabledBy decides a request that only disabled policies match.
func disabledBy(off *policy.Installed) policy.Decision {
	return policy.Decision{Policy: off, Allowed: true, Remaining: off.Spec.Limit.Capacity, Source: policy.FromPolicy}
}

// behind says whether a request requires a version newer than the one in
// force.
func behind(request *policy.Request, inForce *policy.Installed) bool {
	return request.RequirePolicyVersion && request.PolicyVersion > inForce.Version
}

// failed makes an error what the caller is told, and counts what is uncertain.
func (l *Limiter) failed(set *inForce, c *call, err error) error {
	var store *policy.StoreError
	if !errors.As(err, &store) {
		return err
	}
	if store.Fault == policy.StoreUnsure && set != nil {
		if counters, ok := set.counters[c.check.Policy]; ok {
			counters.unsure()
		}
	}
	return store.Problem()
}

func notYet(detail string) error {
	return &policy.Error{Code: policy.CodeNotYet, Reason: policy.ReasonNotYet, Detail: detail}
}

func errOverloaded() error {
	return &policy.Error{Code: policy.CodeOverloaded, Reason: policy.ReasonOverloaded,
		Detail: "too many requests wait for the store; nothing was decided or charged"}
}

func errPoliciesUnsettled() error {
	return &policy.Error{Code: policy.CodeUnavailable, Reason: policy.ReasonStoreUnavailable,
		Detail: "the policies changed while this was decided; nothing was charged"}
}
