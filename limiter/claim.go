package limiter

import (
	"slices"
	"time"

	"github.com/rationhq/ration/policy"
)

// claim is what a call asks on the general path, and what it is told. Each has
// one of its own: a lane may look at what was asked when the caller has gone.
type claim struct {
	policy.Claim

	unknown    result         // of a claim without checks: the answer where nothing is stored under its operation id
	inProgress time.Time      // the lane's: when another call was first found to decide the same operation
	verdict    policy.Verdict // the result, where the call's own has no error
}

// newClaim makes a claim on the checks, which it keeps.
func newClaim(request *policy.Request, checks []policy.Check) *claim {
	c := &claim{Claim: policy.Claim{Stated: request.Cost, Peek: request.Peek, Checks: checks}}
	if request.OperationID != "" {
		c.Operation = policy.OperationKeyOf(request.Gateway, request.Values[policy.Account], request.OperationID)
		c.Content = policy.ContentOf(&request.Values)
	}
	return c
}

// hasOperation says whether the outcome is kept under an operation id.
func (c *claim) hasOperation() bool { return c.Operation != policy.Key{} }

// repeats says whether the claim is the same request as other under the same
// operation id: it is told what other is told, and may take as little.
func (c *claim) repeats(other *claim) bool {
	return c.Operation == other.Operation && c.Content == other.Content && c.Stated == other.Stated &&
		(len(c.Checks) > 0) == (len(other.Checks) > 0)
}

// kind is that of the lanes which decide the claim.
func (c *claim) kind() kind {
	if c.hasOperation() {
		return durableClaims
	}
	for i := range c.Checks {
		if spec := c.Checks[i].Policy.Spec; spec.Durability == policy.Durable || spec.Limit.Algorithm == policy.Concurrency {
			return durableClaims
		}
	}
	return fastClaims
}

// answered takes a verdict over, as one of the status; its parts are the
// lane's.
func (c *claim) answered(verdict *policy.Verdict, status policy.ClaimStatus) {
	c.verdict = *verdict
	c.verdict.Status = status
	c.verdict.Parts = slices.Clone(verdict.Parts)
}

// isSimple says whether the fast path decides a request with these checks: a
// single policy's, whose outcome nobody asks for again.
func isSimple(request *policy.Request, checks []policy.Check) bool {
	return len(checks) == 1 && request.OperationID == "" && checks[0].Policy.FastPath()
}

// firstIdentity is who asks, for the choice of a lane: the account, else the
// first other identity that there is.
func firstIdentity(request *policy.Request) string {
	for identity := policy.Account; identity <= policy.TargetAccount; identity++ {
		if value := request.Values[identity]; value != "" {
			return value
		}
	}
	return ""
}
