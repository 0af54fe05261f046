package memstore

import (
	"fmt"

	"github.com/rationhq/ration/policy"
)

// ledger is one policy and all that its keys hold.
type ledger struct {
	policy *policy.Installed // the current version
	limit  limit
	idle   state // what a key that is not among the keys holds
	keys   map[policy.Key]state

	// overflow is shared by the keys that found the store full.
	overflow state
}

// newLedger is a policy whose keys were never charged.
func newLedger(number int32, id string, spec *policy.Spec, nowMicros int64) *ledger {
	rule := limitOf(spec.Limit)
	return &ledger{
		policy: &policy.Installed{
			Number: number, ID: id, Version: 1, Spec: spec, Mode: spec.Mode, InstalledAtMicros: nowMicros,
		},
		limit:    rule,
		idle:     rule.unspent(nowMicros),
		overflow: rule.unspent(nowMicros),
		keys:     map[policy.Key]state{},
	}
}

// replace installs the next version and carries every key into it.
func (l *ledger) replace(spec *policy.Spec, nowMicros int64) {
	installed := *l.policy
	installed.Version++
	installed.Spec, installed.Mode = spec, spec.Mode
	installed.InstalledAtMicros = max(nowMicros, installed.InstalledAtMicros)

	before, after := l.limit, limitOf(spec.Limit)
	l.idle = l.idle.crossed(before, after, installed.InstalledAtMicros)
	l.overflow = l.overflow.crossed(before, after, installed.InstalledAtMicros)
	for key, s := range l.keys {
		l.keys[key] = s.crossed(before, after, installed.InstalledAtMicros)
	}
	l.policy, l.limit = &installed, after
}

// place is where a key's state is kept: under the key itself, or in what the
// keys of a full store share.
type place struct {
	ledger   *ledger
	key      policy.Key
	overflow bool
}

// ledger gives a policy by its number.
func (s *Store) ledger(number int32) (*ledger, error) {
	if number < 1 || int(number) > len(s.policies) {
		return nil, internal("the store holds no policy %d", number)
	}
	return s.policies[number-1], nil
}

// find gives the place of a key and what it holds.
func (s *Store) find(held *ledger, key policy.Key) (place, state) {
	p := place{ledger: held, key: key}
	if known, ok := held.keys[key]; ok {
		return p, known
	}
	if s.keys >= s.entriesMax {
		p.overflow = true
		return p, held.overflow
	}
	return p, held.idle
}

// keep puts a state into its place.
func (s *Store) keep(p place, after state) {
	if p.overflow {
		p.ledger.overflow = after
		return
	}
	if _, known := p.ledger.keys[p.key]; !known {
		s.keys++
	}
	p.ledger.keys[p.key] = after
}

// internal is a fault of the caller's program.
func internal(format string, args ...any) error {
	return &policy.Error{
		Code: policy.CodeInternal, Reason: policy.ReasonInternal, Detail: fmt.Sprintf(format, args...),
	}
}
