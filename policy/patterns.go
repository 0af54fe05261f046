package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// patternsMax bounds the patterns of one field of a match.
const patternsMax = 1000

// Match says which requests a policy speaks of: every given field must match.
type Match [AttributeCount]Patterns

// Patterns are exact names, prefix wildcards (`report.*`, `*`) or, for IP,
// addresses, CIDR prefixes and `*`, in canonical form. Empty: the field is
// absent and matches any request, one without the attribute too.
type Patterns []string

// matchOrder is the order in which a match's fields are written. Their names
// are the attributes' plurals.
var matchOrder = [AttributeCount]Attribute{
	Operation, Plan, Region, Account, User, APIKey, OAuthToken, IP, TargetAccount,
}

var matchMembers = members[Match]{
	{name: "operations", read: readPatterns(Operation)},
	{name: "plans", read: readPatterns(Plan)},
	{name: "regions", read: readPatterns(Region)},
	{name: "accounts", read: readPatterns(Account)},
	{name: "users", read: readPatterns(User)},
	{name: "apiKeys", read: readPatterns(APIKey)},
	{name: "oauthTokens", read: readPatterns(OAuthToken)},
	{name: "ips", read: readPatterns(IP)},
	{name: "targetAccounts", read: readPatterns(TargetAccount)},
}

// readMatch reads which requests a policy speaks of.
func readMatch(r *reader, change *Change, value jsontext.Value) {
	readObject(r, value, &change.Spec.Match, matchMembers)
}

// readPatterns reads the patterns of one attribute.
func readPatterns(attribute Attribute) func(*reader, *Match, jsontext.Value) {
	return func(r *reader, match *Match, value jsontext.Value) {
		var patterns Patterns
		before := make(map[string]bool)
		count := 0
		r.each(value, patternsMax, func(element jsontext.Value) {
			count++
			pattern := r.pattern(attribute, element)
			if before[pattern] {
				r.fault("repeats an earlier pattern")
			}
			if pattern != "" {
				before[pattern] = true
				patterns = append(patterns, pattern)
			}
		})
		if count == 0 && value.Kind() == jsontext.KindBeginArray {
			r.fault("must have at least one pattern; leave the member out to match any request")
		}
		match[attribute] = patterns
	}
}

// pattern reads one pattern into its canonical form; "" after a fault.
func (r *reader) pattern(attribute Attribute, value jsontext.Value) string {
	pattern := r.text(value, 1, TextBytesMax+len("*"))
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	switch {
	case pattern == "" || pattern == "*":
		return pattern
	case len(prefix) > TextBytesMax:
		r.fault("must be at most " + strconv.Itoa(TextBytesMax) + " bytes")
		return ""
	case attribute == IP:
		network, err := canonicalNetwork(pattern)
		if err != nil {
			r.fault(err.Error())
		}
		return network
	case strings.Contains(prefix, "*"):
		r.fault("may have a wildcard * at its end only")
		return ""
	case attribute == TargetAccount && isPrefix:
		return r.folded(canonicalTargetPrefix(prefix)) + "*"
	case attribute == TargetAccount:
		return r.folded(CanonicalTarget(pattern))
	case attribute == Operation && !isOperationPrefix(prefix):
		r.fault("matches no operation, which " + operationDetail)
		return ""
	}
	return pattern
}

// folded checks the canonical form of a pattern for a target account.
func (r *reader) folded(canonical string) string {
	if canonical == "" || len(canonical) > TextBytesMax {
		r.fault("must be 1 to " + strconv.Itoa(TextBytesMax) + " bytes in canonical form (trimmed, NFKC, case-folded)")
	}
	return canonical
}

// readPer reads which attributes make a policy's key.
func readPer(r *reader, change *Change, value jsontext.Value) {
	per := []Attribute{}
	r.each(value, AttributeCount, func(element jsontext.Value) {
		if element.Kind() != jsontext.KindString {
			r.faultForm("must be text")
			return
		}
		attribute, known := ParseAttribute(string(unquote(element)))
		switch {
		case !known:
			r.fault("must be one of " + strings.Join(attributeNames[:], ", "))
		case slices.Contains(per, attribute):
			r.fault("repeats an earlier attribute")
		default:
			per = append(per, attribute)
		}
	})
	slices.Sort(per)
	change.Spec.Per = per
}

// match writes which requests a policy speaks of.
func (w *writer) match(match *Match) {
	w.open("match", '{')
	w.patterns(match)
	w.close('}')
}

// patterns writes the fields that are given.
func (w *writer) patterns(match *Match) {
	for _, attribute := range matchOrder {
		if patterns := match[attribute]; len(patterns) > 0 {
			w.open(attribute.String()+"s", '[')
			for _, pattern := range patterns {
				w.element(pattern)
			}
			w.close(']')
		}
	}
}
