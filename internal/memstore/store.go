// Package memstore is the store in memory: the token buckets of the
// semantics, read a second time and independently of the stored functions.
// Tests compare the two answer by answer, and an instance keeps its local
// limits in it while PostgreSQL is gone.
//
// To disagree with the stored functions wherever one of the two is wrong, it
// shares neither code nor method with them. It counts in exact fractions of a
// token instead of integers in units; it serves the callers of a counted ask
// one after the other instead of dividing; and a policy change converts every
// bucket at once, where the database converts a row when it next meets it.
//
// A Store has no clock, no goroutines and no lasting state. Its methods mirror
// those of the PostgreSQL store, contexts and errors included, so that one
// conformance suite (internal/storetest) runs against both.
package memstore

import (
	"context"
	"fmt"
	"sync"

	"github.com/rationhq/ration/policy"
)

// Store holds policies and their buckets. It is safe for concurrent use.
type Store struct {
	mu         sync.Mutex
	bucketsMax int
	buckets    int       // how many the policies hold together, without the overflow ones
	generation int64     // of the policy set, raised by every change
	policies   []*ledger // by number, which counts from 1
	byID       map[string]*ledger
}

// ledger is one policy and all that its keys hold.
type ledger struct {
	policy  *policy.Installed // the current version
	limit   limit
	idle    bucket // what a key without a bucket holds
	buckets map[policy.Key]bucket

	// overflow is shared by the keys that found the store full.
	overflow bucket
}

// New makes an empty store of at most bucketsMax buckets. Once it is full,
// the keys it does not know share one bucket per policy, so that a flood of
// new keys gets one allowance together and pushes no busy key out;
// [Store.Clean] makes room again.
func New(bucketsMax int) *Store {
	return &Store{bucketsMax: bucketsMax, byID: map[string]*ledger{}}
}

// Install puts a change in force and returns the version that now is.
// expected is the version the change replaces, 0 for a policy that does not
// exist yet; a policy that stands at another version is a version-conflict
// (CodeConflict). Content identical to the current version's is no change:
// that version is returned. The change's Spec must be valid, as
// policy.ParseChange leaves it, and must not be modified afterwards.
//
// nowMicros is the clock. A version is never in force earlier than the one it
// replaces, whatever the clock says.
func (s *Store) Install(
	_ context.Context, id string, change *policy.Change, expected int, nowMicros int64,
) (*policy.Installed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	held := s.byID[id]
	current := 0
	if held != nil {
		current = held.policy.Version
	}
	if current != expected {
		return nil, &policy.Error{
			Code: policy.CodeConflict, Reason: policy.ReasonVersionConflict,
			Detail: fmt.Sprintf("policy %q is at version %d, not %d", id, current, expected),
		}
	}
	switch {
	case held == nil:
		held = s.create(id, change.Spec, nowMicros)
	case held.policy.Spec.Equal(change.Spec):
		return held.policy, nil
	default:
		held.replace(change.Spec, nowMicros)
	}
	s.generation++
	return held.policy, nil
}

// create adds a policy whose keys are all full.
func (s *Store) create(id string, spec *policy.Spec, nowMicros int64) *ledger {
	rule := limitOf(spec.Limit)
	created := &ledger{
		policy: &policy.Installed{
			Number: int32(len(s.policies) + 1), ID: id, Version: 1, //nolint:gosec // a few policies, as memory is
			Spec: spec, InstalledAtMicros: nowMicros,
		},
		limit:    rule,
		idle:     rule.full(nowMicros),
		overflow: rule.full(nowMicros),
		buckets:  map[policy.Key]bucket{},
	}
	s.policies = append(s.policies, created)
	s.byID[id] = created
	return created
}

// replace installs the next version and carries every bucket into it.
func (l *ledger) replace(spec *policy.Spec, nowMicros int64) {
	installed := *l.policy
	installed.Version++
	installed.Spec = spec
	installed.InstalledAtMicros = max(nowMicros, installed.InstalledAtMicros)

	before, after := l.limit, limitOf(spec.Limit)
	l.idle = l.idle.crossed(before, after, installed.InstalledAtMicros)
	l.overflow = l.overflow.crossed(before, after, installed.InstalledAtMicros)
	for key, b := range l.buckets {
		l.buckets[key] = b.crossed(before, after, installed.InstalledAtMicros)
	}
	l.policy, l.limit = &installed, after
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

	policies := make([]*policy.Installed, len(s.policies))
	for i, held := range s.policies {
		policies[i] = held.policy
	}
	return policies, nil
}
