package policy

import (
	"slices"
	"strings"
)

// Gateway is a caller of the decision listener, and what it may speak for. The
// zero Gateway is whoever reaches an open listener: nothing tells it from
// others, and it may speak for everything.
type Gateway struct {
	Name  string // scopes the operation ids that it gives, so that no other's can meet them
	Scope GatewayScope
}

// GatewayScope says what a gateway may speak for: as in a policy's [Match], every
// given field must match the request. It has operations, regions and accounts.
type GatewayScope Match

// scopeAttributes are those that a scope can have, in the order of faults.
var scopeAttributes = [...]Attribute{Account, Region, Operation}

var scopeMembers = members[Match]{
	{name: "accounts", read: readPatterns(Account)},
	{name: "operations", read: readPatterns(Operation)},
	{name: "regions", read: readPatterns(Region)},
}

// ParseGatewayScope reads a gateway's scope. The error is an [*Error] of reason
// invalid-request with every fault.
func ParseGatewayScope(body []byte) (GatewayScope, error) {
	var r reader
	var match Match
	if object, ok := r.document(body); ok {
		readObject(&r, object, &match, scopeMembers)
	}
	return GatewayScope(match), r.err(ReasonInvalidRequest)
}

// JSON gives the form that [ParseGatewayScope] reads.
func (s *GatewayScope) JSON() []byte {
	var w writer
	w.open("", '{')
	w.patterns((*Match)(s))
	w.close('}')
	return w.out
}

// Check says whether the gateway may speak for a request. The error is an
// [*Error] of reason gateway-scope with every fault.
func (g *Gateway) Check(request *Request) error {
	return g.check(&request.Values, scopeAttributes[:])
}

// CheckAccount says whether the gateway may speak for an account, "" where
// what is asked for has none. The error is as of [Gateway.Check].
func (g *Gateway) CheckAccount(account string) error {
	var values [AttributeCount]string
	values[Account] = account
	return g.check(&values, []Attribute{Account})
}

func (g *Gateway) check(values *[AttributeCount]string, attributes []Attribute) error {
	var faults []Fault
	for _, attribute := range attributes {
		patterns, value := g.Scope[attribute], values[attribute]
		switch {
		case len(patterns) == 0 || value != "" && patterns.cover(value):
			continue
		case value == "":
			faults = append(faults, Fault{Pointer: "/" + attribute.RequestMember(), Detail: "is needed: this gateway may speak for some only"})
		default:
			faults = append(faults, Fault{Pointer: "/" + attribute.RequestMember(), Detail: "is none that this gateway may speak for"})
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return &Error{Code: CodeForbidden, Reason: ReasonGatewayScope, Detail: "This gateway may not speak for that.", Faults: faults}
}

// cover says whether a value is one of the names, or begins with one of the
// prefixes.
func (p Patterns) cover(value string) bool {
	return slices.ContainsFunc(p, func(pattern string) bool {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		return pattern == value || isPrefix && strings.HasPrefix(value, prefix)
	})
}
