package memstore

import (
	"fmt"

	"github.com/rationhq/ration/policy"
)

// ledger is one policy and all that its keys hold.
type ledger struct {
	policy *policy.Installed // the newest version, a tombstone's when it was deleted
	limit  limit
	idle   state // what a key that is not among the keys holds
	since  int   // the version with which what is kept began; of a tombstone, its own

	// What was counted goes when the policy begins anew. Slots stay for the work
	// that holds them, and count again if the policy comes back to them.
	counted, slots shelf
}

// shelf is what the keys of a policy hold.
type shelf struct {
	keys map[policy.Key]state

	// overflow is shared by the keys that found the store full.
	overflow state
}

// newLedger is a policy whose keys were never charged.
func newLedger(number int32, id string, change *policy.Change, nowMicros int64) *ledger {
	l := &ledger{
		policy: &policy.Installed{Number: number, ID: id, InstalledAtMicros: nowMicros},
		slots:  shelf{keys: map[policy.Key]state{}, overflow: charges(nil)},
	}
	l.advance(change.Spec, nowMicros)
	l.begin(change.Start)
	return l
}

// shelf is where the policy keeps its state in this version.
func (l *ledger) shelf() *shelf {
	if l.limit.algorithm == policy.Concurrency {
		return &l.slots
	}
	return &l.counted
}

// advance puts the next version in force, with none of the state yet.
func (l *ledger) advance(spec *policy.Spec, nowMicros int64) {
	installed := *l.policy
	installed.Version++
	installed.Spec, installed.Mode, installed.Deleted = spec, spec.Mode, false
	installed.InstalledAtMicros = max(nowMicros, installed.InstalledAtMicros)
	l.policy, l.limit = &installed, limitOf(spec.Limit)
}

// begin forgets all that was counted and says how many keys that was of: what
// is kept begins with the version in force.
func (l *ledger) begin(start policy.Start) (forgotten int) {
	forgotten = len(l.counted.keys)
	l.since = l.policy.Version
	l.idle = l.limit.begun(start, l.policy.InstalledAtMicros)
	l.counted = shelf{keys: map[policy.Key]state{}, overflow: l.idle}
	return forgotten
}

// carry brings every key into the version in force from the one before.
func (l *ledger) carry(before limit, rule policy.Balances) {
	at := l.policy.InstalledAtMicros
	l.idle = l.idle.crossed(before, l.limit, rule, at)
	kept := l.shelf()
	kept.overflow = kept.overflow.crossed(before, l.limit, rule, at)
	for key, s := range kept.keys {
		kept.keys[key] = s.crossed(before, l.limit, rule, at)
	}
}

// place is where a key's state is kept: under the key itself, or in what the
// keys of a full store share.
type place struct {
	ledger   *ledger
	shelf    *shelf
	key      policy.Key
	overflow bool
}

// ledger gives a policy in force by its number.
func (s *Store) ledger(number int32) (*ledger, error) {
	if number < 1 || int(number) > len(s.policies) || s.policies[number-1].policy.Deleted {
		return nil, internal("the store holds no policy %d", number)
	}
	return s.policies[number-1], nil
}

// find gives the place of a key and what it holds.
func (s *Store) find(held *ledger, key policy.Key) (place, state) {
	p := place{ledger: held, shelf: held.shelf(), key: key}
	if known, ok := p.shelf.keys[key]; ok {
		return p, known
	}
	if s.keys >= s.entriesMax {
		p.overflow = true
		return p, p.shelf.overflow
	}
	return p, held.idle
}

// keep puts a state into its place.
func (s *Store) keep(p place, after state) {
	if p.overflow {
		p.shelf.overflow = after
		return
	}
	if _, known := p.shelf.keys[p.key]; !known {
		s.keys++
	}
	p.shelf.keys[p.key] = after
}

// internal is a fault of the caller's program.
func internal(format string, args ...any) error {
	return &policy.Error{
		Code: policy.CodeInternal, Reason: policy.ReasonInternal, Detail: fmt.Sprintf(format, args...),
	}
}
