package policy

import (
	"net/netip"
	"slices"
	"strings"
)

// matcher tells whether one attribute of a request matches the patterns of one
// field. A pattern that another one covers is left out, so no value matches
// two of them.
type matcher struct {
	exact    []string // ascending
	prefixes []string // ascending; none begins with another
}

// newMatcher compiles the patterns of one field. Addresses and networks become
// the text of their bits ([bitText]), and so ordinary names and prefixes.
func newMatcher(attribute Attribute, patterns Patterns) matcher {
	var exact, prefixes []string
	for _, pattern := range patterns {
		text, isPrefix := strings.CutSuffix(pattern, "*")
		if attribute == IP && !isPrefix {
			text, isPrefix = networkText(pattern)
		}
		if isPrefix {
			prefixes = append(prefixes, text)
		} else {
			exact = append(exact, text)
		}
	}
	// In ascending order what covers a text comes before it.
	var m matcher
	slices.Sort(prefixes)
	for _, prefix := range prefixes {
		if !m.hasPrefixOf(prefix) {
			m.prefixes = append(m.prefixes, prefix)
		}
	}
	slices.Sort(exact)
	for _, name := range slices.Compact(exact) {
		if !m.hasPrefixOf(name) {
			m.exact = append(m.exact, name)
		}
	}
	return m
}

// networkText gives the bits of a canonical address or CIDR prefix. One that
// is neither, which no parsed policy has, stays a name that no address has.
func networkText(pattern string) (text string, isPrefix bool) {
	if network, err := netip.ParsePrefix(pattern); err == nil {
		return bitText(network.Addr(), network.Bits()), true
	}
	if address, err := netip.ParseAddr(pattern); err == nil {
		return bitText(address, address.BitLen()), false
	}
	return pattern, false
}

// matches says whether a request's value matches; "", which stands for an
// attribute the request does not have, never does.
func (m *matcher) matches(value string) bool {
	if value == "" {
		return false
	}
	if _, found := slices.BinarySearch(m.exact, value); found {
		return true
	}
	return m.hasPrefixOf(value)
}

// hasPrefixOf says whether value begins with one of the prefixes. Texts that
// begin with a prefix follow it without a gap, and no prefix begins with
// another: only the last one that is not above value can be it.
func (m *matcher) hasPrefixOf(value string) bool {
	i, found := slices.BinarySearch(m.prefixes, value)
	return found || i > 0 && strings.HasPrefix(value, m.prefixes[i-1])
}

// isAny says whether every value matches.
func (m *matcher) isAny() bool { return len(m.prefixes) == 1 && m.prefixes[0] == "" }
