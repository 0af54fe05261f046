package policy

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
)

// reviewNamesMax bounds how many policies one warning names.
const reviewNamesMax = 5

// Review warns of what a policy, put under id, would mean together with the
// others in force: that one of them makes it superfluous, or it them.
func (s *Set) Review(id string, spec *Spec) []Warning {
	if spec.Mode == Disabled {
		return nil
	}
	put := &Installed{ID: id, Spec: spec, Mode: spec.Mode}
	if known, found := s.Lookup(id); found {
		put.Overrides = known.Overrides // which follow their policy
	}
	mine := newCompiled(put, 0)
	var above, below []string
	for i := range s.compiled {
		other := &s.compiled[i]
		switch {
		case other.ID == id || other.Mode == Disabled:
		case other.Mode == Enforce && other.deniesBefore(&mine):
			above = append(above, other.ID)
		case spec.Mode == Enforce && mine.deniesBefore(other):
			below = append(below, other.ID)
		}
	}
	var warnings []Warning
	if len(above) > 0 {
		warnings = append(warnings, Warning{Name: WarnShadowed, Pointer: "/limit", Detail: "can never deny: whatever it matches has to pass " +
			someOf(above) + " too, by the same key and at least as tight; tighten this limit, narrow the other, or do without one"})
	}
	if len(below) > 0 {
		warnings = append(warnings, Warning{Name: WarnShadows, Pointer: "/limit", Detail: "is at least as tight, by the same key, for all that " +
			someOf(below) + " can match, which can never deny then; narrow this policy, or do without the other"})
	}
	return warnings
}

// someOf names the first of some policies and counts the rest.
func someOf(ids []string) string {
	if more := len(ids) - reviewNamesMax; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:reviewNamesMax], ", "), more)
	}
	return strings.Join(ids, ", ")
}

// deniesBefore says whether whatever other would deny, c denies at the latest
// then: it matches all that other does, under the same key and for the same
// cost, and its limit is as tight. Keys for which an override makes c let more
// pass, or other less, are another matter.
func (c *compiled) deniesBefore(other *compiled) bool {
	spec, looser := c.Spec, other.Spec
	return c.overridesOnly(OverrideBlocked) && other.overridesOnly(OverrideExempt) &&
		slices.Equal(spec.Per, looser.Per) && (!spec.keyedBy(IP) || spec.IPPrefix == looser.IPPrefix) &&
		spec.Scope == looser.Scope && spec.Costs.equal(&looser.Costs) &&
		spec.Limit.asTightAs(&looser.Limit) && c.covers(other)
}

// overridesOnly says whether every override that keys of c have is of an action.
func (c *compiled) overridesOnly(action OverrideAction) bool {
	for _, override := range c.Overrides {
		if override.Action != action {
			return false
		}
	}
	return true
}

// covers says whether c matches whatever other matches and has the key for.
func (c *compiled) covers(other *compiled) bool {
	for i := range c.fields {
		mine := &c.fields[i]
		theirs := other.field(mine.attribute)
		always := mine.attribute == Operation || other.Spec.keyedBy(mine.attribute)
		if theirs == nil && !(mine.isAny() && always) || theirs != nil && !mine.covers(theirs) {
			return false
		}
	}
	return true
}

// covers says whether every value that other matches is matched.
func (m *matcher) covers(other *matcher) bool {
	for _, name := range other.exact {
		if !m.matches(name) {
			return false
		}
	}
	for _, prefix := range other.prefixes {
		if !m.hasPrefixOf(prefix) {
			return false
		}
	}
	return true
}

// asTightAs says whether a limit never allows what other, charged the same,
// would deny.
func (l *Limit) asTightAs(other *Limit) bool {
	if l.Algorithm != other.Algorithm || l.Capacity > other.Capacity || l.Strict != other.Strict {
		return false
	}
	switch l.Algorithm {
	case TokenBucket:
		return l.Rate.atMost(other.Rate)
	case Concurrency:
		return l.SpanMicros >= other.SpanMicros // slots last as long at least
	default:
		return l.SpanMicros == other.SpanMicros
	}
}

// atMost says whether a rate is no higher than another.
func (r Rate) atMost(other Rate) bool {
	high, low := bits.Mul64(uint64(r.N), uint64(other.D))           //nolint:gosec // both are positive
	otherHigh, otherLow := bits.Mul64(uint64(other.N), uint64(r.D)) //nolint:gosec // both are positive
	return high < otherHigh || high == otherHigh && low <= otherLow
}

// equal says whether every request costs the same.
func (c *Costs) equal(other *Costs) bool {
	return c.Default == other.Default && c.Max == other.Max && maps.Equal(c.Operations, other.Operations)
}
