package main

import (
	"net/http"
	"net/url"

	"github.com/rationhq/ration/policy"
)

// lookUp finds what was decided under an operation id.
func (m *model) lookUp(account, id string) outcome {
	told, known := m.told[policy.OperationKeyOf("", account, id)]
	if !known {
		return refused(policy.ReasonNotFound)
	}
	replay := *told.Decision
	replay.Source = "replay"
	return outcome{Status: http.StatusOK, Decision: &replay}
}

// settle replaces a charge.
func (m *model) settle(account, id string, actual, nowMicros int64) outcome {
	m.Helper()
	settled, err := m.store.Settle(m.Context(), policy.Settlement{Operation: policy.OperationKeyOf("", account, id), ActualCost: actual}, nowMicros)
	if err != nil {
		m.Fatal(err)
	}
	switch settled.Status {
	case policy.SettleConflict:
		return refused("settlement-conflict")
	case policy.SettleSlots:
		return refused("settlement-of-slots")
	case policy.SettleUnknown:
		return refused(policy.ReasonNotFound)
	case policy.SettleDone, policy.SettleReplayed:
	}
	reply := &settledReply{OperationID: id, SettledAt: exact(settled.AtMicros), Replayed: settled.Status == policy.SettleReplayed, Policies: []settledPartReply{}}
	for _, part := range settled.Parts {
		reply.Clamped = reply.Clamped || part.Clamped
		reply.Policies = append(reply.Policies, settledPartReply(part))
	}
	return outcome{Status: http.StatusOK, Settled: reply}
}

// usage peeks at all limits of a caller.
func (m *model) usage(query url.Values, nowMicros int64) outcome {
	m.Helper()
	request, err := policy.ParseUsage(query)
	if err != nil {
		return m.fault(err)
	}
	var matched policy.Matched
	if err := m.set.MatchUsage(request, &matched); err != nil {
		return m.fault(err)
	}
	reply := &usageReply{Policies: []partReply{}, Missing: []missingReply{}}
	verdict := policy.Verdict{}
	if len(matched.Checks) > 0 {
		verdict = m.decide(policy.Claim{Peek: true, Checks: matched.Checks}, nowMicros)
	}
	for i, part := range verdict.Parts {
		if spec := matched.Checks[i].Policy.Spec; spec.ShowsFigures() {
			shown := partOf(policy.DecisionPart{
				Policy: matched.Checks[i].Policy, Allowed: part.Allowed, Remaining: part.Remaining, RetryAfterMicros: part.RetryAfterMicros,
			})
			shown.ResetAt = foretold(nowMicros + part.ResetAfterMicros)
			reply.Policies = append(reply.Policies, shown)
		}
	}
	for _, skipped := range matched.Skipped {
		if skipped.Policy.Spec.ShowsFigures() {
			reply.Missing = append(reply.Missing, missingReply{skipped.Policy.ID, skipped.Attribute.RequestMember()})
		}
	}
	return outcome{Status: http.StatusOK, Usage: reply}
}

// release and renew end or prolong a slot.
func (m *model) release(id policy.SlotID, nowMicros int64) outcome {
	m.Helper()
	released, err := m.store.ReleaseSlot(m.Context(), id, nowMicros)
	if err != nil {
		m.Fatal(err)
	}
	if !released {
		return refused(policy.ReasonNotFound)
	}
	return outcome{Status: http.StatusNoContent}
}

func (m *model) renew(id policy.SlotID, nowMicros int64) outcome {
	m.Helper()
	expiresAtMicros, renewed, err := m.store.RenewSlot(m.Context(), id, nowMicros)
	if err != nil {
		m.Fatal(err)
	}
	if !renewed {
		return refused(policy.ReasonNotFound)
	}
	return outcome{Status: http.StatusOK, Slot: &slotReply{SlotID: id.String(), ExpiresAt: exact(expiresAtMicros)}}
}
