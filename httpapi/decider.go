package httpapi

import (
	"context"

	"github.com/rationhq/ration/policy"
)

// Decider answers requests, each within its own DeadlineMillis where it has
// one. A denial is a decision; errors are *policy.Error or the context's.
type Decider interface {
	// Decide answers one request. Reasons of its errors: invalid-request (an
	// attribute that a policy's key rejects without), cost-not-allowed,
	// no-policy, policy-behind, not-yet, store-unavailable, overloaded.
	Decide(ctx context.Context, request *policy.Request) (policy.Decision, error)

	// DecideBatch answers requests[i] in results[i]; both have the same length.
	// One request's failure is its own result's, and so is its deadline.
	DecideBatch(ctx context.Context, requests []*policy.Request, results []policy.Result)
}
