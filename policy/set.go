package policy

import (
	"net/netip"
	"slices"
	"strings"
)

// Set is an immutable, compiled set of policies of one generation. It is safe
// for use by any number of goroutines.
type Set struct {
	generation int64
	policies   []*Installed // ascending by id
	compiled   []compiled   // in the same order
	indexes    [AttributeCount]*index
	unfiled    []*compiled // those no attribute selects: looked at for every request
	operations []*compiled // those that operations select
	matchesIP  bool        // some policy matches by address
}

// compiled is a policy made ready to match.
type compiled struct {
	*Installed
	order  int     // place in the set, which is the order of ids
	fields []field // the given fields of its match
}

// field is one given field of a match.
type field struct {
	matcher

	attribute Attribute
}

// newCompiled makes a policy ready to match.
func newCompiled(policy *Installed, order int) compiled {
	c := compiled{Installed: policy, order: order}
	for attribute, patterns := range policy.Spec.Match {
		if len(patterns) > 0 {
			attribute := Attribute(attribute)
			c.fields = append(c.fields, field{newMatcher(attribute, patterns), attribute})
		}
	}
	return c
}

// field gives a policy's patterns of an attribute, nil when it has none.
func (c *compiled) field(attribute Attribute) *matcher {
	for i := range c.fields {
		if c.fields[i].attribute == attribute {
			return &c.fields[i].matcher
		}
	}
	return nil
}

// matches says whether every given field matches.
func (c *compiled) matches(values *[AttributeCount]string) bool {
	for i := range c.fields {
		if field := &c.fields[i]; !field.matches(values[field.attribute]) {
			return false
		}
	}
	return true
}

// matchesAnyOperation says whether every given field but that on operations
// matches.
func (c *compiled) matchesAnyOperation(values *[AttributeCount]string) bool {
	for i := range c.fields {
		if field := &c.fields[i]; field.attribute != Operation && !field.matches(values[field.attribute]) {
			return false
		}
	}
	return true
}

// Compile makes the set of the policies of one generation, whose ids must be
// distinct. Each is filed under its most selective field, so that matching a
// request looks only at policies that it is likely to match.
func Compile(generation int64, policies []*Installed) *Set {
	s := &Set{generation: generation, policies: slices.Clone(policies)}
	slices.SortFunc(s.policies, func(a, b *Installed) int { return strings.Compare(a.ID, b.ID) })
	s.compiled = make([]compiled, len(s.policies))
	all := make([]*compiled, len(s.policies))
	for i, policy := range s.policies {
		s.compiled[i] = newCompiled(policy, i)
		all[i] = &s.compiled[i]
		s.matchesIP = s.matchesIP || all[i].field(IP) != nil
	}
	var filed [AttributeCount][]*compiled
	census := newCensus(all)
	for _, policy := range all {
		if attribute, ok := census.mostSelective(policy); ok {
			filed[attribute] = append(filed[attribute], policy)
		} else {
			s.unfiled = append(s.unfiled, policy)
		}
	}
	s.operations = filed[Operation]
	for attribute, policies := range filed {
		if len(policies) > 0 {
			s.indexes[attribute] = newIndex(Attribute(attribute), policies)
		}
	}
	return s
}

// Generation is the number of the store's whole policy set that this one is.
func (s *Set) Generation() int64 { return s.generation }

// Policies gives all policies, ascending by id. The slice is the set's own.
func (s *Set) Policies() []*Installed { return s.policies }

// Lookup finds a policy by its id.
func (s *Set) Lookup(id string) (*Installed, bool) {
	i, found := slices.BinarySearchFunc(s.policies, id, func(p *Installed, id string) int { return strings.Compare(p.ID, id) })
	if !found {
		return nil, false
	}
	return s.policies[i], true
}

// candidates appends the policies that a request may match; every one that it
// does match is among them, once.
func (s *Set) candidates(to []*compiled, values *[AttributeCount]string) []*compiled {
	to = append(to, s.unfiled...)
	for attribute, index := range s.indexes {
		if value := values[attribute]; index != nil && value != "" {
			to = index.appendFiled(to, value)
		}
	}
	return to
}

// matchable gives the values that matchers compare: an address as its bits.
func (s *Set) matchable(values *[AttributeCount]string) [AttributeCount]string {
	matchable := *values
	if s.matchesIP && values[IP] != "" {
		if address, err := netip.ParseAddr(values[IP]); err == nil {
			matchable[IP] = bitText(address, address.BitLen())
		}
	}
	return matchable
}
