package policy

import (
	"fmt"
	"slices"
)

// Find gives any version of a policy by the store's number, one that is not in
// force any more too.
type Find func(number int32, version int) (*Installed, error)

// Decision makes the answer to a request of what the store said, with the
// figures of the tightest policy on top. v must be decided or replayed.
//
// checks are what the claim asked; whoever only looks up an outcome has none.
// find is asked for the policies and versions of a replay that are not among
// them, and its error is the only one there is beside that of a verdict
// without parts, which no store gives.
func (v *Verdict) Decision(operationID string, checks []Check, find Find) (Decision, error) {
	if len(v.Parts) == 0 {
		return Decision{}, &Error{Code: CodeInternal, Reason: ReasonInternal, Cause: fmt.Errorf("a verdict of status %d has no parts", v.Status)}
	}
	parts := make([]DecisionPart, len(v.Parts))
	tightest := -1
	var tightestCost int64
	for i := range v.Parts {
		part := &v.Parts[i]
		installed, cost, err := part.installed(checks, find)
		if err != nil {
			return Decision{}, err
		}
		if v.Status == ClaimReplayed {
			cost = part.Cost // the checks of the repetition may ask another
		}
		parts[i] = DecisionPart{
			Policy: installed, Allowed: part.Allowed, Remaining: part.Remaining,
			RetryAfterMicros: part.RetryAfterMicros, ResetAfterMicros: part.ResetAfterMicros, Slot: part.Slot,
		}
		if tightest < 0 || parts[i].tighter(cost, &parts[tightest], tightestCost) {
			tightest, tightestCost = i, cost
		}
	}
	top := &parts[tightest]
	decision := Decision{
		Policy: top.Policy, Allowed: v.Allowed, Remaining: top.Remaining,
		AtMicros: v.AtMicros, ResetAfterMicros: top.ResetAfterMicros,
		Source: FromStore, Detail: &Detail{OperationID: operationID, Parts: parts},
	}
	if v.Status == ClaimReplayed {
		decision.Source = FromReplay
	}
	if !v.Allowed { // a shadow policy's wait is nobody's
		decision.RetryAfterMicros = top.RetryAfterMicros
	}
	return decision, nil
}

// installed gives the policy and version of a part, and what the claim asked
// of it if it did.
func (p *Part) installed(checks []Check, find Find) (installed *Installed, cost int64, err error) {
	i := slices.IndexFunc(checks, func(c Check) bool { return c.Policy.Number == p.Policy && c.Policy.Version == p.Version })
	if i >= 0 {
		return checks[i].Policy, checks[i].Cost, nil
	}
	installed, err = find(p.Policy, p.Version)
	return installed, 0, err
}

// tighter says whether a part, which a claim asks for cost, binds the caller
// more than other, which comes before it: enforced before shadow, denying
// before allowing; of the denying the longest wait, of the allowing the fewest
// further calls.
func (d *DecisionPart) tighter(cost int64, other *DecisionPart, otherCost int64) bool {
	if enforced, otherEnforced := d.Policy.Mode != Shadow, other.Policy.Mode != Shadow; enforced != otherEnforced {
		return enforced
	}
	if d.Allowed != other.Allowed {
		return other.Allowed
	}
	if d.Allowed {
		return d.Remaining/max(cost, 1) < other.Remaining/max(otherCost, 1)
	}
	return other.RetryAfterMicros != Never && (d.RetryAfterMicros == Never || d.RetryAfterMicros > other.RetryAfterMicros)
}
