package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/rationhq/ration/policy"
)

// patternsShown is how many patterns of a field are shown that says no.
const patternsShown = 5

// Explainer knows the policies in force and the balances. Errors are
// *policy.Error or the context's.
type Explainer interface {
	// Explain says how a request would fare and why, and takes nothing. Of the
	// policies that do not match only the one named by only is told of, unless
	// that is "".
	Explain(ctx context.Context, request *policy.Request, only string) (*policy.Explanation, error)

	// Review warns of what a policy, put under id, would mean together with the
	// others in force.
	Review(id string, spec *policy.Spec) []policy.Warning
}

// explanation is the JSON of an explanation.
type explanation struct {
	Allowed     *bool             `json:"allowed,omitempty"` // absent: it would not be decided
	Problem     *refused          `json:"problem,omitempty"` // why
	At          string            `json:"at,omitempty"`      // of the balances
	Policies    []explainedMember `json:"policies"`
	NotMatching []unmatchedMember `json:"notMatching"`
	More        int               `json:"notMatchingMore,omitempty"`
}

// refused is the problem that a request would be answered.
type refused struct {
	Type   policy.Reason `json:"type"`
	Detail string        `json:"detail"`
	Errors []faultMember `json:"errors,omitempty"`
}

// explainedMember is a policy that the request matches.
type explainedMember struct {
	Policy     string            `json:"policy"`
	Version    int               `json:"version"`
	Mode       string            `json:"mode"`
	Standing   string            `json:"standing"`
	Missing    string            `json:"missing,omitempty"`
	Key        string            `json:"key,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"` // of the key
	Override   string            `json:"override,omitempty"`
	Cost       int64             `json:"cost"`

	*balanceMember //nolint:embeddedstructfieldcheck // it comes last in JSON
}

// balanceMember is what the store holds of a key, and would answer.
type balanceMember struct {
	Limit            int64  `json:"limit"`
	Remaining        int64  `json:"remaining"`
	Allowed          bool   `json:"allowed"`
	RetryAfterMillis *int64 `json:"retryAfterMillis"`    // null: never
	AllowedAt        string `json:"allowedAt,omitempty"` // absent: never
	ResetAt          string `json:"resetAt"`
}

// unmatchedMember is a policy that the request does not match.
type unmatchedMember struct {
	Policy   string   `json:"policy"`
	Version  int      `json:"version"`
	Field    string   `json:"field"`           // of match, the first that says no
	Value    string   `json:"value,omitempty"` // the request's; absent: it has none
	Patterns []string `json:"patterns"`        // the first of the field
}

// review warns of what a put would mean together with the other policies.
func (a *admin) review(put policy.Put) []policy.Warning {
	if a.explainer == nil {
		return nil
	}
	return a.explainer.Review(put.ID, put.Change.Spec)
}

// explain answers how a request would fare, and charges nothing.
func (a *admin) explain(w http.ResponseWriter, r *http.Request) (int, error) {
	query, err := readQuery(r, "policy")
	if err != nil {
		return 0, err
	}
	only := query.Get("policy")
	if query.Has("policy") && policy.ValidID(only) != nil {
		return 0, badRequest(`The query parameter "policy" must be a policy's id.`)
	}
	body, err := readJSON(r, nil, decisionBytesMax)
	if err != nil {
		return 0, err
	}
	request, err := policy.ParseRequest(body)
	if err != nil {
		return 0, err
	}
	explained, err := a.explainer.Explain(r.Context(), request, only)
	if err != nil {
		return 0, err
	}
	return a.writeValue(w, r, explanationOf(explained))
}

func explanationOf(e *policy.Explanation) *explanation {
	shown := &explanation{Policies: []explainedMember{}, NotMatching: []unmatchedMember{}, More: e.More}
	if problem, ok := errors.AsType[*policy.Error](e.Refusal); ok {
		shown.Problem = &refused{Type: problem.Reason, Detail: problem.Detail}
		for _, fault := range problem.Faults {
			shown.Problem.Errors = append(shown.Problem.Errors, faultMember{Pointer: fragment(fault.Pointer), Detail: fault.Detail})
		}
	} else {
		shown.Allowed = &e.Allowed
	}
	if e.AtMicros > 0 {
		shown.At = instantText(e.AtMicros)
	}
	for i := range e.Matching {
		shown.Policies = append(shown.Policies, explainedOf(&e.Matching[i], e.AtMicros))
	}
	for _, other := range e.Others {
		patterns := other.Policy.Spec.Match[other.Attribute]
		shown.NotMatching = append(shown.NotMatching, unmatchedMember{
			Policy: other.Policy.ID, Version: other.Policy.Version, Field: other.Attribute.String() + "s",
			Value: other.Value, Patterns: patterns[:min(patternsShown, len(patterns))],
		})
	}
	return shown
}

func explainedOf(e *policy.Explained, atMicros int64) explainedMember {
	shown := explainedMember{
		Policy: e.Policy.ID, Version: e.Policy.Version, Mode: e.Policy.Mode.String(),
		Standing: e.Standing.String(), Cost: e.Cost,
	}
	if e.Standing == policy.Skips || e.Standing == policy.Rejects {
		shown.Missing = e.Missing.RequestMember()
	}
	if e.Key != (policy.Key{}) {
		shown.Key = e.Key.Hex()
		shown.Attributes = make(map[string]string, len(e.Values))
		for _, value := range e.Values {
			shown.Attributes[value.Attribute.RequestMember()] = value.Value
		}
	}
	if e.Override != nil {
		shown.Override = e.Override.Action.String()
	}
	if e.Part != nil {
		shown.balanceMember = balanceOf(e.Part, atMicros)
	}
	return shown
}

func balanceOf(part *policy.DecisionPart, atMicros int64) *balanceMember {
	balance := &balanceMember{
		Limit: part.Policy.Spec.Limit.Capacity, Remaining: part.Remaining, Allowed: part.Allowed,
		ResetAt: instantText(policy.InstantAfter(atMicros, part.ResetAfterMicros)),
	}
	if part.RetryAfterMicros != policy.Never {
		wait := waitMillis(part.RetryAfterMicros)
		balance.RetryAfterMillis = &wait
		balance.AllowedAt = instantText(policy.InstantAfter(atMicros, part.RetryAfterMicros))
	}
	return balance
}
