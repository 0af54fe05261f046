// Package storetest is what every store has to pass: the guarantees of the
// semantics one by one ([Run]), seeded random histories that two stores must
// answer alike ([Compare]), and replays of real traffic ([ReplayWebAccess],
// [ReplayLogins]).
//
// It drives a store by an explicit clock and never waits.
package storetest

import (
	"context"
	"testing"

	"github.com/rationhq/ration/policy"
)

// Store is what the suite needs of a store. Adapters keep it whole: where a
// store has a fast path and a settling one, Decide goes down both, so that
// every answer is policy.Answered.
//
// Every instant is given, in microseconds, and no two calls overlap.
type Store interface {
	Installer

	// Decide answers a batch at batch.NowMicros.
	Decide(ctx context.Context, batch *policy.Batch, answers *policy.Answers) error

	// DecideClaims answers claims at claims.NowMicros, in their order. Nobody
	// else holds rows, so every verdict is decided, replayed, reused or unknown.
	DecideClaims(ctx context.Context, claims *policy.Claims, verdicts *policy.Verdicts) error

	// Settle replaces the cost that an operation was charged.
	Settle(ctx context.Context, settlement policy.Settlement, nowMicros int64) (policy.Settled, error)

	// ReleaseSlot ends a slot that is live.
	ReleaseSlot(ctx context.Context, id policy.SlotID, nowMicros int64) (released bool, err error)

	// RenewSlot gives a slot that is live its whole time again, from now on.
	RenewSlot(ctx context.Context, id policy.SlotID, nowMicros int64) (expiresAtMicros int64, renewed bool, err error)

	// Clean deletes everything that may be deleted at the instant - state that
	// is like an absent key's, slots that have expired, outcomes whose retention
	// is over - however many batches that takes, and says how much that was.
	Clean(ctx context.Context, nowMicros int64) (deleted int, err error)

	// Lose is a crash, after which the store has recovered at the instant: what
	// fast policies keep is gone, but for slots.
	Lose(ctx context.Context, nowMicros int64) error
}

// Installer is the part of a [Store] that holds its policies.
type Installer interface {
	// Install puts a change of the policy id in force. expected is the version
	// it replaces, 0 to create; another version is a version-conflict. Content
	// identical to the current version's, with state that does not begin anew,
	// returns that version and changes nothing. What needs a restart or a reset
	// and does not say so is policy-invalid.
	Install(
		ctx context.Context, id string, change *policy.Change, expected int, nowMicros int64,
	) (*policy.Installed, error)

	// Delete ends a policy with a tombstone, its next version. expected is the
	// version in force; another one, or none, is a version-conflict.
	Delete(ctx context.Context, id string, expected int, nowMicros int64) error

	// Generation gives the number of the policy set. Every change raises it.
	Generation(ctx context.Context) (int64, error)

	// Policies gives the policies in force, in any order.
	Policies(ctx context.Context) ([]*policy.Installed, error)
}

// check is one guarantee. It gets a store of its own.
type check struct {
	name string
	run  func(*scene)
}

// Run checks every guarantee under both durabilities. newStore makes an empty
// store and takes it away when the test it is given ends.
func Run(t *testing.T, newStore func(t testing.TB) Store) {
	t.Helper()
	for _, durability := range []policy.Durability{policy.Fast, policy.Durable} {
		t.Run(durability.String(), func(t *testing.T) {
			t.Parallel()
			for _, check := range checks() {
				t.Run(check.name, func(t *testing.T) {
					t.Parallel()
					check.run(newScene(t, newStore, durability))
				})
			}
		})
	}
}

// checks are all guarantees, in the order of the semantics.
func checks() []check {
	var all []check
	all = append(all, bucketChecks()...)
	all = append(all, callChecks()...)
	all = append(all, changeChecks()...)
	all = append(all, beginningChecks()...)
	all = append(all, limitChecks()...)
	all = append(all, claimChecks()...)
	all = append(all, operationChecks()...)
	all = append(all, settleChecks()...)
	all = append(all, slotChecks()...)
	all = append(all, lossChecks()...)
	all = append(all, caseChecks()...)
	all = append(all, windowCaseChecks()...)
	return append(all, claimCaseChecks()...)
}
