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
	// no-policy, too-many-policies, policy-unnamed, policy-behind,
	// operation-id-reused, operation-in-progress, store-unavailable, overloaded.
	Decide(ctx context.Context, request *policy.Request) (policy.Decision, error)

	// DecideBatch answers requests[i] in results[i]; both have the same length.
	// One request's failure is its own result's, and so is its deadline.
	DecideBatch(ctx context.Context, requests []*policy.Request, results []policy.Result)

	// Usage tells what one caller has left under every policy that could apply
	// to it, and takes nothing. Errors are those of Decide.
	Usage(ctx context.Context, request *policy.Request) (policy.Usage, error)
}

// Operations keeps what became of operation ids, and the slots that decisions
// acquired. Errors are *policy.Error or the context's.
type Operations interface {
	// FindOperation gives the decision stored under an operation id
	// ([policy.OperationKeyOf]), with its Detail but without the id; not-found
	// when there is none.
	FindOperation(ctx context.Context, operation policy.Key) (policy.Decision, error)

	// Settle replaces the cost that an operation was charged, once.
	Settle(ctx context.Context, settlement policy.Settlement) (policy.Settled, error)

	// ReleaseSlot ends a slot; released is false when it is not live.
	ReleaseSlot(ctx context.Context, id policy.SlotID) (released bool, err error)

	// RenewSlot prolongs a slot by its life from now on; renewed is false when
	// it is not live.
	RenewSlot(ctx context.Context, id policy.SlotID) (expiresAtMicros int64, renewed bool, err error)
}
