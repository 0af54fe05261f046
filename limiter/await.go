package limiter

import (
	"context"

	"github.com/rationhq/ration/policy"
)

// AwaitLoaded waits until the first policies are in force; its error is the
// context's.
func (l *Limiter) AwaitLoaded(ctx context.Context) error {
	return l.policies.await(ctx, func(*inForce) bool { return true })
}

// Await waits until a version of a policy, or a later one, is in force in this
// instance, or with a tombstone none; its error is the context's. The store decides under the version
// from COMMIT on; what an instance may lack until then is knowing which
// requests it matches.
func (l *Limiter) Await(ctx context.Context, installed *policy.Installed) error {
	return l.policies.await(ctx, func(set *inForce) bool {
		known, found := set.Lookup(installed.ID)
		return found && known.Version >= installed.Version || !found && installed.Deleted
	})
}

// AwaitGeneration waits until a generation of the store's policies, or a later
// one, is in force in this instance; its error is the context's.
func (l *Limiter) AwaitGeneration(ctx context.Context, generation int64) error {
	return l.policies.await(ctx, func(set *inForce) bool { return set.Generation() >= generation })
}

// await asks for a look, and waits for further ones until the set in force
// satisfies the condition.
func (f *follower) await(ctx context.Context, condition func(*inForce) bool) error {
	for asked := false; ; asked = true {
		look := f.nextLook()
		if current := f.current.Load(); current != nil && condition(current) {
			return nil
		}
		if !asked {
			f.refresh() // after nextLook: no earlier look takes the wish away
		}
		select {
		case <-look.ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
