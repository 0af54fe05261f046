package limiter

import (
	"context"
	"slices"
	"time"

	"github.com/rationhq/ration/policy"
)

// prepare matches a request and makes it a call. Its lane is nil when there is
// nothing to send: the call is done, by the policies alone or by an error.
func (l *Limiter) prepare(ctx context.Context, set *inForce, request *policy.Request, c *call, matched *policy.Matched) {
	if !c.begin(ctx, set) {
		return
	}
	c.err = set.Match(request, matched)
	for _, skipped := range matched.Skipped {
		set.counters[skipped.Policy].skipped[skipped.Attribute].Inc()
	}
	set.countOverridden(matched)
	switch {
	case c.err != nil:
	case request.RequirePolicyVersion && request.Policy == "" && len(matched.Checks) > 1:
		c.err = errPolicyUnnamed()
	case set.behind(request, matched):
		c.again = errPolicyBehind()
	case matched.Denying() != nil:
		c.decision = blockedBy(matched.Denying())
	case len(matched.Checks) == 0:
		c.decision = passedBy(matched.Unchecked())
	case isSimple(request, matched.Checks):
		c.check = matched.Checks[0]
		c.peek = request.Peek
		c.queueIn(l.laneOf(&c.check), set)
		return
	default:
		c.claim = newClaim(request, slices.Clone(matched.Checks))
		c.queueIn(l.generalLaneOf(request, c.claim), set)
		return
	}
	if request.OperationID != "" { // what was decided under it before comes first
		c.claim = newClaim(request, nil)
		c.claim.unknown, c.result = c.result, result{}
		c.queueIn(l.generalLaneOf(request, c.claim), set)
	}
}

// begin empties a call for the next match, and says whether it can be decided
// at all.
func (c *call) begin(ctx context.Context, set *inForce) bool {
	c.lane, c.claim, c.result = nil, nil, result{}
	c.state.Store(done)
	c.queuedAt = time.Now()
	switch {
	case set == nil:
		c.err = errNoPolicies()
	case ctx.Err() != nil || !c.queuedAt.Before(c.deadline):
		c.err = errNotSent()
	default:
		return true
	}
	return false
}

// queueIn makes a call ready for a lane.
func (c *call) queueIn(lane *lane, set *inForce) {
	c.generation = set.Generation()
	c.lane = lane
	c.state.Store(queued)
}

// behind says whether a request requires a newer version than the one in force
// here of the policy that it names, else of the one that it matches.
func (f *inForce) behind(request *policy.Request, matched *policy.Matched) bool {
	if !request.RequirePolicyVersion {
		return false
	}
	required := matched.Unchecked()
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

// passedBy decides a request of which no policy asks anything: those that
// match are disabled, or have an override that asks nothing.
func passedBy(installed *policy.Installed) policy.Decision {
	return policy.Decision{Policy: installed, Allowed: true, Remaining: installed.Spec.Limit.Capacity, Source: policy.FromPolicy}
}

// blockedBy decides a request whose key a policy blocks.
func blockedBy(installed *policy.Installed) policy.Decision {
	return policy.Decision{Policy: installed, RetryAfterMicros: policy.Never, Source: policy.FromPolicy}
}

func errNoPolicies() error {
	return &policy.Error{
		Code: policy.CodeUnavailable, Reason: policy.ReasonStoreUnavailable,
		Detail: "No policies are loaded yet.",
	}
}

func errPolicyUnnamed() error {
	return policy.Invalid(policy.ReasonPolicyUnnamed, "Several policies match this request: it has to say whose version it requires.",
		policy.Fault{Pointer: "/policy", Detail: "is required to say which policy policyVersion speaks of"})
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
