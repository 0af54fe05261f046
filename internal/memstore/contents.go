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

// Buckets gives every bucket, by policy and key. The overflow buckets of a
// full store are not among them.
func (s *Store) Buckets() []Bucket {
	s.mu.Lock()
	defer s.mu.Unlock()

	all := make([]Bucket, 0, s.buckets)
	for _, held := range s.policies {
		for key, b := range held.buckets {
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

// Clean deletes the buckets that are the same as their policy's idle bucket
// at the instant, and says how many. No later answer changes, unless the clock
// steps back behind the instant. A bucket ahead of the clock stays: until the
// clock reaches it, it earns nothing, and the idle bucket does.
func (s *Store) Clean(_ context.Context, nowMicros int64) (deleted int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, held := range s.policies {
		for key, b := range held.buckets {
			if b.same(held.idle, held.limit, nowMicros) {
				delete(held.buckets, key)
				deleted++
			}
		}
	}
	s.buckets -= deleted
	return deleted, nil
}

// Lose is the crash of PostgreSQL: the buckets of fast policies are gone, and
// where the policy says so (afterLoss empty) its idle bucket starts again from
// nothing at the instant.
func (s *Store) Lose(nowMicros int64) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, held := range s.policies {
		if held.policy.Spec.Durability != policy.Fast {
			continue
		}
		if held.policy.Spec.AfterLoss == policy.LossEmpty {
			held.idle = bucket{tokens: new(big.Rat), atMicros: max(nowMicros, held.idle.atMicros)}
		}
		s.buckets -= len(held.buckets)
		clear(held.buckets)
		held.overflow = held.idle
	}
}
