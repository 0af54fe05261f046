package memstore

import (
	"bytes"
	"cmp"
	"context"
	"math/big"
	"slices"

	"github.com/rationhq/ration/policy"
)

// Bucket is a copy of one key's state, as a row of the database would have it.
type Bucket struct {
	Policy       int32 // the store's number of the policy
	Version      int   // of the policy, under which the balance counts
	Key          policy.Key
	BalanceUnits int64 // in units of 1/d token
	AtMicros     int64 // the instant of the balance
}

// Buckets gives every token bucket, by policy and key. The overflow buckets of
// a full store are not among them.
func (s *Store) Buckets() []Bucket {
	s.mu.Lock()
	defer s.mu.Unlock()

	all := make([]Bucket, 0, s.keys)
	for _, held := range s.policies {
		for key, kept := range held.counted.keys {
			b, ok := kept.(bucket)
			if !ok {
				continue
			}
			all = append(all, Bucket{
				Policy: held.policy.Number, Version: held.policy.Version, Key: key,
				BalanceUnits: floor(new(big.Rat).Quo(b.tokens, held.limit.unit)).Int64(),
				AtMicros:     b.atMicros,
			})
		}
	}
	slices.SortFunc(all, func(x, y Bucket) int {
		return cmp.Or(cmp.Compare(x.Policy, y.Policy), bytes.Compare(x.Key[:], y.Key[:]))
	})
	return all
}

// Clean deletes the outcomes whose retention is over, the slots that have
// expired and the keys that are the same as one that was never charged, and
// says how much that was. No later answer changes but that of an operation id
// that is forgotten, unless the clock steps back behind the instant. A key
// ahead of the clock stays: a bucket earns nothing until the clock reaches it,
// and the idle bucket does.
func (s *Store) Clean(_ context.Context, nowMicros int64) (deleted int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for key, op := range s.operations {
		if op.expiresAtMicros <= nowMicros {
			delete(s.operations, key)
			deleted++
		}
	}
	for id, place := range s.slots {
		if slots := s.slotsAt(place); slots[slots.slot(id)].mark <= nowMicros {
			s.dropSlot(id, place)
			deleted++
		}
	}
	for _, held := range s.policies {
		deleted += s.drop(&held.counted, func(kept state) bool { return kept.same(held.idle, held.limit, nowMicros) })
		deleted += s.drop(&held.slots, func(kept state) bool { return len(kept.(charges)) == 0 }) //nolint:forcetypeassert // slots are charges
	}
	return deleted, nil
}

// drop deletes the keys of which nothing has to be known, and says how many.
func (s *Store) drop(from *shelf, needless func(state) bool) (deleted int) {
	for key, kept := range from.keys {
		if needless(kept) {
			delete(from.keys, key)
			deleted++
		}
	}
	s.keys -= deleted
	return deleted
}

// Lose is the crash of PostgreSQL: what the keys of fast policies hold is
// gone, and where the policy says so (afterLoss empty) its keys begin again
// with all of the limit spent at the instant. Slots and operation ids are not
// among what a crash loses.
func (s *Store) Lose(_ context.Context, nowMicros int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.lostAtMicros = max(s.lostAtMicros, nowMicros)
	for _, held := range s.policies {
		if held.policy.Deleted || held.policy.Spec.Durability != policy.Fast || held.limit.algorithm == policy.Concurrency {
			continue
		}
		if held.policy.Spec.AfterLoss == policy.LossEmpty {
			held.idle = held.limit.spent(held.idle, nowMicros)
		}
		s.drop(&held.counted, func(state) bool { return true })
		held.counted.overflow = held.idle
	}
	return nil
}
