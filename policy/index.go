package policy

import (
	"slices"
	"strings"
)

// index finds the policies whose patterns of one attribute match a value,
// without looking at the others.
type index struct {
	exact    map[string][]*compiled
	prefixes []prefixGroup // ascending by prefix
}

// prefixGroup holds the policies filed under one prefix.
type prefixGroup struct {
	prefix   string
	parent   int // the longest other prefix of the index that prefix begins with, -1: none
	policies []*compiled
}

// newIndex files each policy under every pattern of one of its fields.
func newIndex(attribute Attribute, policies []*compiled) *index {
	x := &index{exact: make(map[string][]*compiled)}
	groups := make(map[string][]*compiled)
	for _, policy := range policies {
		patterns := policy.field(attribute)
		for _, name := range patterns.exact {
			x.exact[name] = append(x.exact[name], policy)
		}
		for _, prefix := range patterns.prefixes {
			groups[prefix] = append(groups[prefix], policy)
		}
	}
	for prefix, policies := range groups {
		x.prefixes = append(x.prefixes, prefixGroup{prefix: prefix, policies: policies})
	}
	slices.SortFunc(x.prefixes, func(a, b prefixGroup) int { return strings.Compare(a.prefix, b.prefix) })
	for i := range x.prefixes {
		x.prefixes[i].parent = x.longestPrefix(i-1, x.prefixes[i].prefix)
	}
	return x
}

// longestPrefix finds the longest prefix that value begins with, given the
// last group that is not above value; -1 when there is none. Whatever value
// begins with is that group's prefix or one of its parents: between a prefix
// and a text that begins with it stand only texts that begin with it too.
func (x *index) longestPrefix(last int, value string) int {
	for last >= 0 && !strings.HasPrefix(value, x.prefixes[last].prefix) {
		last = x.prefixes[last].parent
	}
	return last
}

// appendFiled appends the policies filed under a pattern that value matches.
// No policy comes twice, for no value matches two patterns of one field.
func (x *index) appendFiled(to []*compiled, value string) []*compiled {
	to = append(to, x.exact[value]...)
	next, found := slices.BinarySearchFunc(x.prefixes, value, func(group prefixGroup, value string) int {
		return strings.Compare(group.prefix, value)
	})
	if !found {
		next--
	}
	for i := x.longestPrefix(next, value); i >= 0; i = x.prefixes[i].parent {
		to = append(to, x.prefixes[i].policies...)
	}
	return to
}

// prefixPenalty is how many exact names a prefix counts for when a policy's
// most selective field is chosen: it is met by more requests than its own
// text shows.
const prefixPenalty = 4

// census counts, by attribute and pattern, the policies that have it.
type census [AttributeCount]struct{ exact, prefixes map[string]int }

// newCensus counts the patterns of all policies.
func newCensus(policies []*compiled) *census {
	var c census
	for i := range c {
		c[i].exact, c[i].prefixes = make(map[string]int), make(map[string]int)
	}
	for _, policy := range policies {
		for _, field := range policy.fields {
			for _, name := range field.exact {
				c[field.attribute].exact[name]++
			}
			for _, prefix := range field.prefixes {
				c[field.attribute].prefixes[prefix]++
			}
		}
	}
	return &c
}

// mostSelective gives the attribute under which a policy is best filed: the
// one where a request that finds it there finds the fewest others with it. ok
// is false when every field matches any value, or there is none.
func (c *census) mostSelective(policy *compiled) (best Attribute, ok bool) {
	least := 0
	for _, field := range policy.fields {
		if field.isAny() {
			continue
		}
		company := 0
		for _, name := range field.exact {
			company = max(company, c[field.attribute].exact[name])
		}
		for _, prefix := range field.prefixes {
			company = max(company, prefixPenalty*c[field.attribute].prefixes[prefix])
		}
		if !ok || company < least {
			best, least, ok = field.attribute, company, true
		}
	}
	return best, ok
}
