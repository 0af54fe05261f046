package policy

import (
	"slices"
	"strconv"
)

// checksMax is how many policies one request can have to pass: each is a row
// that its claim locks.
const checksMax = 64

// logsMax is how many sliding window logs may be among them ([CountLogs]).
const logsMax = 16

// Matched is what a request has to pass. [Set.Match] fills it and reuses its
// buffers; the zero value is ready.
type Matched struct {
	Checks   []Check    // enforced and shadow policies, ascending by id
	Disabled *Installed // the first matching policy that is disabled, nil when none is
	Skipped  []Skipped  // matching policies that do not apply, ascending by id

	// Matching policies with an override for the key, ascending by id: those
	// that exempt it, and those that block it, which deny if they are enforced.
	Exempt, Blocked []*Installed

	candidates []*compiled
}

// Skipped is a matching policy that does not apply, because the request lacks
// an attribute of its key.
type Skipped struct {
	Policy    *Installed
	Attribute Attribute // the first that is missing
}

// Reset empties m and keeps its buffers.
func (m *Matched) Reset() {
	m.Checks, m.Disabled, m.Skipped = m.Checks[:0], nil, m.Skipped[:0]
	m.Exempt, m.Blocked = m.Exempt[:0], m.Blocked[:0]
	m.candidates = m.candidates[:0]
}

// Match finds the policies that a request has to pass, with key and cost under
// each, and fills m. A key that has an override is checked against that, or is
// exempt or blocked. Its errors are [*Error]:
//
//   - no-policy when none applies, not even a disabled one;
//   - invalid-request when a policy rejects requests that lack an attribute
//     which this one lacks, with a fault for each such attribute;
//   - cost-not-allowed when the request states a cost that none of the
//     policies would charge, the disabled among them: switching a policy off
//     must not make its gateways' requests faulty;
//   - too-many-policies when it would have to pass more than 64, or more than
//     16 sliding window logs.
func (s *Set) Match(req *Request, m *Matched) error {
	m.Reset()
	values := s.matchable(&req.Values)
	m.keep(s.candidates(m.candidates, &values), func(c *compiled) bool { return c.matches(&values) })
	var missing [AttributeCount]bool
	chargeable := req.Cost == 0
	for _, candidate := range m.candidates {
		policy := candidate.Installed
		cost, own := policy.Spec.Charge(req.Values[Operation], req.Cost)
		if policy.Mode == Disabled {
			chargeable = chargeable || cost == req.Cost
			if m.Disabled == nil {
				m.Disabled = policy
			}
			continue
		}
		if attribute, lacks := policy.Spec.lacks(&req.Values); lacks {
			m.skipOrReject(policy, attribute, &req.Values, &missing)
			continue
		}
		chargeable = chargeable || cost == req.Cost
		m.check(Check{Policy: policy, Key: KeyOf(policy.ID, policy.Spec, &req.Values), Cost: cost, Priced: own})
	}
	m.price()
	return m.judge(&missing, chargeable)
}

// keep makes those candidates that match what is looked at, ascending by id.
func (m *Matched) keep(candidates []*compiled, matches func(*compiled) bool) {
	m.candidates = slices.DeleteFunc(candidates, func(c *compiled) bool { return !matches(c) })
	slices.SortFunc(m.candidates, func(a, b *compiled) int { return a.order - b.order })
}

// price makes the checks' default costs the request's own where no enforced
// policy has another: what a shadow policy tries out changes nothing for them.
func (m *Matched) price() {
	if slices.ContainsFunc(m.Checks, func(c Check) bool { return c.Priced && c.Policy.Mode == Enforce }) {
		return
	}
	for i := range m.Checks {
		m.Checks[i].Priced = true
	}
}

// lacks gives the first attribute of the key that a request does not have.
func (s *Spec) lacks(values *[AttributeCount]string) (Attribute, bool) {
	for _, attribute := range s.Per {
		if values[attribute] == "" {
			return attribute, true
		}
	}
	return 0, false
}

// skipOrReject notes a policy whose key the request cannot make.
func (m *Matched) skipOrReject(policy *Installed, first Attribute, values *[AttributeCount]string, missing *[AttributeCount]bool) {
	if policy.Spec.OnMissing == Skip {
		m.Skipped = append(m.Skipped, Skipped{Policy: policy, Attribute: first})
		return
	}
	for _, attribute := range policy.Spec.Per {
		missing[attribute] = missing[attribute] || values[attribute] == ""
	}
}

// judge says why the request cannot be decided, if it cannot.
func (m *Matched) judge(missing *[AttributeCount]bool, chargeable bool) error {
	var faults []Fault
	for attribute, lacks := range missing {
		if lacks {
			pointer := "/" + Attribute(attribute).RequestMember()
			faults = append(faults, Fault{Pointer: pointer, Detail: "is required by a policy for this request"})
		}
	}
	switch {
	case len(faults) > 0:
		return Invalid(ReasonInvalidRequest, "A policy for this request needs more than it states.", faults...)
	case len(m.Checks) == 0 && m.Unchecked() == nil:
		return &Error{Code: CodeNotFound, Reason: ReasonNoPolicy, Detail: "No policy applies to this request."}
	case len(m.Checks) > checksMax:
		return tooManyPolicies("More than " + strconv.Itoa(checksMax) + " policies match this request.")
	case CountLogs(m.Checks) > logsMax:
		return tooManyPolicies("More than " + strconv.Itoa(logsMax) + " policies that match this request are a " + SlidingWindowLog.String() + ".")
	case len(m.Checks) > 0 && !chargeable:
		return Invalid(ReasonCostNotAllowed, "No policy for this request would charge the stated cost.",
			Fault{Pointer: "/cost", Detail: "must be left out, or be what a policy for this request charges (costs.max)"})
	}
	return nil
}

func tooManyPolicies(detail string) error { return Invalid(ReasonTooManyPolicies, detail) }
