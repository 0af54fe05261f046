package limiter

import (
	"context"

	"github.com/rationhq/ration/policy"
)

// Session is one connection to the store, used by one lane alone. Errors of
// its calls are [*policy.StoreError].
type Session interface {
	// Take decides a batch by the fast path; what it cannot decide is
	// [policy.Again], uncharged.
	Take(ctx context.Context, batch *policy.Batch, answers *policy.Answers) error

	// TakeNew decides a batch by the settling path.
	TakeNew(ctx context.Context, hold policy.Hold, batch *policy.Batch, answers *policy.Answers) error

	// Decide decides claims by the general path, in their order.
	Decide(ctx context.Context, hold policy.Hold, claims *policy.Claims, verdicts *policy.Verdicts) error

	// Connect connects and warms the session up, unless it is connected.
	Connect(ctx context.Context) error

	// Recover records that the fast state was lost and begins a new incarnation,
	// unless another instance has; found says that this call did.
	Recover(ctx context.Context) (found bool, err error)

	// Close ends the connection.
	Close()
}

// Policies is where policies come from.
type Policies interface {
	// Load gives the generation in force and the policies that changed since
	// another; since 0 gives all.
	Load(ctx context.Context, since int64) (generation int64, changed []*policy.Installed, err error)

	// Installed gives the versions that decided parts, also those that are not
	// in force any more. Errors are [*policy.Error].
	Installed(ctx context.Context, parts []policy.Part) (policy.Find, error)
}
