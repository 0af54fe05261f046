package memstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/rationhq/ration/policy"
)

// Install puts a change in force and returns the version that now is.
// expected is the version the change replaces, 0 for a policy that does not
// exist yet, or no more; a policy that stands at another version is a
// version-conflict (CodeConflict). Content identical to the current version's
// is no change, unless the change says that its state begins anew: that version
// is returned. A change of what says which state a policy keeps, and the return
// of a deleted policy, are policy-invalid unless the change says what begins
// anew. The change must be valid, as policy.ParseChange leaves it, and its Spec
// must not be modified afterwards.
//
// nowMicros is the clock. A version is never in force earlier than the one it
// replaces, whatever the clock says.
func (s *Store) Install(
	_ context.Context, id string, change *policy.Change, expected int, nowMicros int64,
) (*policy.Installed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	held := s.byID[id]
	if err := expects(id, held, expected); err != nil {
		return nil, err
	}
	anew := change.Balances == policy.Reset || change.Balances == policy.Restart
	switch {
	case held == nil:
		held = newLedger(int32(len(s.policies)+1), id, change, nowMicros) //nolint:gosec // a few policies, as memory is
		s.policies = append(s.policies, held)
		s.byID[id] = held
	case !anew && !held.policy.Deleted && held.policy.Spec.Equal(change.Spec):
		return held.policy, nil
	default:
		if err := held.refuses(change); err != nil {
			return nil, err
		}
		before := held.limit
		held.advance(change.Spec, nowMicros)
		if anew {
			s.keys -= held.begin(change.Start)
		} else {
			held.carry(before, change.Balances)
		}
	}
	s.generation++
	return held.policy, nil
}

// Delete ends a policy with a tombstone, its next version. What its keys have
// used counts no more; slots live until they are released or expire. Errors are
// those of Install.
func (s *Store) Delete(_ context.Context, id string, expected int, nowMicros int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	held := s.byID[id]
	if held == nil || held.policy.Deleted || expected != held.policy.Version {
		return conflict(id, expected)
	}
	held.advance(held.policy.Spec, nowMicros)
	s.keys -= held.begin(policy.StartNone)
	held.policy.Deleted = true
	s.generation++
	return nil
}

// expects checks that a policy stands at a version.
func expects(id string, held *ledger, expected int) error {
	current := 0
	if held != nil && !held.policy.Deleted {
		current = held.policy.Version
	}
	if current != expected {
		return conflict(id, expected)
	}
	return nil
}

func conflict(id string, expected int) error {
	return &policy.Error{
		Code: policy.CodeConflict, Reason: policy.ReasonVersionConflict,
		Detail: fmt.Sprintf("policy %q is not at version %d", id, expected),
	}
}

// refuses names what a change must not change while it carries over what is
// kept, and the rule itself where there is nothing to carry over.
func (l *ledger) refuses(change *policy.Change) error {
	if change.Balances == policy.Restart {
		return nil
	}
	was, will := l.policy.Spec, change.Spec
	var faults []policy.Fault
	differs := func(differs bool, pointer string) {
		if differs {
			faults = append(faults, policy.Fault{Pointer: pointer, Detail: "needs a restart"})
		}
	}
	differs(!slices.Equal(was.Per, will.Per), "/per")
	differs(prefix(was) != prefix(will), "/ipPrefix")
	differs(was.Durability != will.Durability, "/durability")
	differs(was.Scope != will.Scope, "/scope")
	differs(was.Limit.Algorithm != will.Limit.Algorithm, "/limit/algorithm")
	differs(window(&was.Limit) != window(&will.Limit), "/limit/windowSeconds")
	differs(counts(&was.Limit) != counts(&will.Limit), "/limit/strict")
	if len(faults) == 0 && l.policy.Deleted && change.Balances != policy.Reset {
		differs(true, "/balances")
	}
	if len(faults) == 0 {
		return nil
	}
	return policy.Invalid(policy.ReasonPolicyInvalid, "The state cannot be carried over.", faults...)
}

// prefix is how a policy cuts addresses, nothing where it counts by none.
func prefix(spec *policy.Spec) policy.IPPrefix {
	if slices.Contains(spec.Per, policy.IP) {
		return spec.IPPrefix
	}
	return policy.IPPrefix{}
}

// window is the time that a limit counts in, 0 where it counts in none.
func window(l *policy.Limit) int64 {
	if l.Algorithm == policy.Concurrency {
		return 0
	}
	return l.SpanMicros
}

// counts is how finely a sliding window counter counts, 0 for the others.
func counts(l *policy.Limit) int {
	switch {
	case l.Algorithm != policy.SlidingWindowCounter:
		return 0
	case l.Strict:
		return policy.SegmentsPerWindow
	}
	return 1
}
