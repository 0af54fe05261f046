package policy

import "strconv"

// usageMax is how many policies one look at a caller's limits tells of.
const usageMax = 256

// Usage is how much of every limit one caller has left. Nothing is taken by
// looking at it.
type Usage struct {
	Parts    []DecisionPart // as one more request of the caller would find them, ascending by policy id
	Missing  []Skipped      // policies whose key takes more than is known of the caller, ascending by id
	AtMicros int64          // the instant on the store's clock; 0 when it was not asked
}

// ParseUsage reads who the caller is from the parameters of a query, by name.
// They are the attributes of a request, of which the operation may be left
// out: all of the caller's limits are meant then. The error is an [*Error] of
// reason invalid-request with every fault.
func ParseUsage(parameters map[string][]string) (*Request, error) {
	var r reader
	request := new(Request)
	found := r.parameters(parameters, request)
	r.checkIdentified(found)
	if err := r.err(ReasonInvalidRequest); err != nil {
		return nil, err
	}
	return request, nil
}

// MatchUsage finds all policies that limit a caller, with their keys and what
// a request of his is usually charged, and fills m. Where req has no
// operation, every operation is meant: what policies say of operations is left
// aside. A policy whose key takes what req does not have is among m.Skipped,
// whatever it would do with such a request. That nothing limits a caller is no
// error. One of reason too-many-policies is given when more than 256 do.
func (s *Set) MatchUsage(req *Request, m *Matched) error {
	m.Reset()
	values := s.matchable(&req.Values)
	candidates, matches := s.candidates(m.candidates, &values), (*compiled).matches
	if req.Values[Operation] == "" {
		candidates, matches = append(candidates, s.operations...), (*compiled).matchesAnyOperation
	}
	m.keep(candidates, func(c *compiled) bool { return c.Mode != Disabled && matches(c, &values) })
	if len(m.candidates) > usageMax {
		return tooManyPolicies("More than " + strconv.Itoa(usageMax) + " policies limit this caller; an operation, if none is stated, narrows them.")
	}
	for _, candidate := range m.candidates {
		policy := candidate.Installed
		if attribute, lacks := policy.Spec.lacks(&req.Values); lacks {
			m.Skipped = append(m.Skipped, Skipped{Policy: policy, Attribute: attribute})
			continue
		}
		cost, _ := policy.Spec.Charge(req.Values[Operation], 0)
		m.check(Check{Policy: policy, Key: KeyOf(policy.ID, policy.Spec, &req.Values), Cost: cost})
	}
	return nil
}
