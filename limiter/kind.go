package limiter

import (
	"context"

	"github.com/rationhq/ration/policy"
)

// kind is what a lane decides. Lanes of different kinds share nothing, so that
// the slower kinds do not delay the faster ones.
type kind uint8

const (
	fastAsks      kind = iota // one token bucket in unlogged tables
	durableAsks               // one token bucket in logged tables, whose calls wait for the disk
	fastClaims                // any claim that touches unlogged tables alone
	durableClaims             // claims that touch logged tables: durable policies, slots, operation ids

	kindCount = int(durableClaims) + 1
)

// String gives the kind's name in the log.
func (k kind) String() string {
	return [kindCount]string{"fast", "durable", "general fast", "general durable"}[k]
}

// general says whether lanes of the kind decide by the general path.
func (k kind) general() bool { return k >= fastClaims }

// skippedMax bounds the groups of one call around held rows.
func (k kind) skippedMax() int {
	if k.general() {
		return skippedClaimsMax
	}
	return BatchAsksBound
}

// function is what a path calls.
func (k kind) function(p path) function {
	switch {
	case k.general():
		return decideFunction
	case p == fast:
		return takeFunction
	default:
		return takeNewFunction
	}
}

// batcher makes the batches of a kind of lane, in the terms of its functions
// of the store.
type batcher interface {
	// take makes at most groupsMax groups, at least 1, from the waiting calls, and
	// gives the calls that have to wait on, in order. All calls of a batch are of one
	// generation, that of the first; others wait. Calls whose callers left are
	// gone. The groups are valid until the next take; release lets go of them
	// before.
	take(waiting []*call, groupsMax int) (groups []group, rest []*call)

	// release lets go of the calls of the last batch.
	release()

	// send sends groups to the store as one call; stale says that they were
	// matched under another policy set than the store's.
	send(ctx context.Context, session Session, path path, groups []group) (stale bool, err error)

	// answer hands the answers of the last call to the callers of its groups
	// and gives those that were not decided.
	answer(l *lane, groups []group) (again []group)
}

// newBatcher makes the batcher of a kind.
func newBatcher(k kind, config *Config) batcher {
	if k.general() {
		return newClaims(config)
	}
	durability := policy.Fast
	if k == durableAsks {
		durability = policy.Durable
	}
	return &asks{gathering: newGathering(config.BatchAsksMax), batch: policy.Batch{Durability: durability}}
}

// Sessions is how many sessions of the store so many lanes of each kind need:
// one each.
func Sessions(lanes int) int { return lanes * kindCount }
