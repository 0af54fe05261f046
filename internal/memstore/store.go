// Package memstore is the store in memory: the algorithms, operation ids,
// settlements and slots of the semantics, read a second time and independently
// of the stored functions. Tests compare the two answer by answer.
//
// To disagree with the stored functions wherever one of the two is wrong, it
// shares neither code nor method with them. It counts in exact fractions of a
// token instead of integers in units; it serves the callers of a counted ask
// one after the other instead of dividing; a window is the list of its charges
// and a wait is searched for, where the database has formulas; and a policy
// change converts every key at once, where the database converts a row when it
// next meets it.
//
// A Store has no clock, no goroutines and no lasting state. Its methods mirror
// those of the PostgreSQL store, contexts and errors included, so that one
// conformance suite (internal/storetest) runs against both.
package memstore

import (
	"context"
	"sync"

	"github.com/rationhq/ration/policy"
)

// Store holds policies and what their keys were charged. It is safe for
// concurrent use.
type Store struct {
	mu         sync.Mutex
	entriesMax int
	keys       int       // how many the policies hold together
	generation int64     // of the policy set, raised by every change
	policies   []*ledger // by number, which counts from 1
	byID       map[string]*ledger
	operations map[policy.Key]*operation
	slots      map[policy.SlotID]place

	lostAtMicros int64 // when the fast state was last lost
}

// New makes an empty store of at most entriesMax keys, as many slots and as
// many outcomes of operation ids; a key holds no more than its policy's limit
// has room for. A full store never gives more than one with room would: the
// keys it does not know share one allowance per policy, so that a flood of new
// keys gets that together and pushes no busy key out; no slot is handed out;
// and a new operation id is not remembered, so that a repeat is charged anew.
// [Store.Clean] makes room again.
func New(entriesMax int) *Store {
	return &Store{
		entriesMax: entriesMax,
		byID:       map[string]*ledger{},
		operations: map[policy.Key]*operation{},
		slots:      map[policy.SlotID]place{},
	}
}

// Generation gives the number of the policy set, which every change raises.
func (s *Store) Generation(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.generation, nil
}

// Policies gives the policies in force, by ascending number.
func (s *Store) Policies(context.Context) ([]*policy.Installed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	policies := make([]*policy.Installed, 0, len(s.policies))
	for _, held := range s.policies {
		if !held.policy.Deleted {
			policies = append(policies, held.policy)
		}
	}
	return policies, nil
}
