package memstore

import (
	"context"
	"slices"

	"github.com/rationhq/ration/policy"
)

// operation is what was decided under an operation id.
type operation struct {
	content         policy.Key
	stated          int64 // the stated cost, 0 when none was
	price           int64 // the largest cost that a policy would charge
	expiresAtMicros int64
	verdict         policy.Verdict
	charged         []chargedPart // in the order of the decision

	settledCost int64
	settled     *policy.Settled // nil until it is
}

// chargedPart is what one policy charged.
type chargedPart struct {
	place   place
	version int
	cost    int64
	priced  bool
	mark    int64 // where the charge stands
}

func newOperation(claim *policy.Claim, v policy.Verdict, charged []chargedPart, expiresAtMicros int64) *operation {
	return &operation{
		content: claim.Content, stated: claim.Stated, price: price(claim),
		expiresAtMicros: expiresAtMicros, verdict: clone(v), charged: charged,
	}
}

// price is the largest cost of a claim's checks.
func price(claim *policy.Claim) int64 {
	largest := int64(0)
	for _, check := range claim.Checks {
		largest = max(largest, check.Cost)
	}
	return largest
}

// repeated answers a claim under the same operation id.
func (op *operation) repeated(claim *policy.Claim) policy.Verdict {
	if !op.asks(claim) {
		return policy.Verdict{Status: policy.ClaimReused}
	}
	replay := clone(op.verdict)
	replay.Status = policy.ClaimReplayed
	return replay
}

// asks says whether a claim is the request that was decided: of the same
// content, and either of the same stated cost, or with a cost stated on one
// side only that is what the other side was to be charged. A claim without
// checks has no price to compare.
func (op *operation) asks(claim *policy.Claim) bool {
	if claim.Content != op.content {
		return false
	}
	if claim.Stated == op.stated {
		return true
	}
	oneStates := claim.Stated == 0 || op.stated == 0
	return oneStates && (len(claim.Checks) == 0 || price(claim) == op.price)
}

// Settle replaces what an operation was charged by the request's cost, once.
func (s *Store) Settle(_ context.Context, settlement policy.Settlement, nowMicros int64) (policy.Settled, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	op, known := s.operations[settlement.Operation]
	switch {
	case !known || !op.verdict.Allowed:
		return policy.Settled{Status: policy.SettleUnknown}, nil
	case op.onlySlots():
		return policy.Settled{Status: policy.SettleSlots}, nil
	case op.settled == nil:
		op.settledCost = settlement.ActualCost
		op.settled = &policy.Settled{Status: policy.SettleReplayed, AtMicros: nowMicros}
		for _, part := range op.charged {
			op.settled.Parts = append(op.settled.Parts, s.settlePart(op, part, settlement.ActualCost, nowMicros))
		}
		return op.settledAs(policy.SettleDone), nil
	case op.settledCost != settlement.ActualCost:
		return policy.Settled{Status: policy.SettleConflict}, nil
	}
	return op.settledAs(policy.SettleReplayed), nil
}

// onlySlots says whether all that the request's cost was charged to is slots.
func (op *operation) onlySlots() bool {
	slots := 0
	for _, part := range op.charged {
		switch {
		case !part.priced:
		case part.place.ofSlots():
			slots++
		default:
			return false
		}
	}
	return slots > 0
}

// settledAs is the answer to a settlement that was made.
func (op *operation) settledAs(status policy.SettleStatus) policy.Settled {
	return policy.Settled{Status: status, AtMicros: op.settled.AtMicros, Parts: slices.Clone(op.settled.Parts)}
}

// settlePart replaces one policy's charge.
func (s *Store) settlePart(op *operation, part chargedPart, actual, nowMicros int64) policy.SettledPart {
	held := part.place.ledger
	settled := policy.SettledPart{
		Policy: held.policy.ID, Version: part.version, Charged: part.cost, Actual: part.cost,
	}
	if !part.priced || part.place.ofSlots() {
		return settled
	}
	settled.Actual = actual
	if part.version < held.since {
		return settled // what was charged went when the policy began anew, or ended
	}
	if op.verdict.AtMicros < s.lostAtMicros && held.policy.Spec.Durability == policy.Fast {
		return settled // lost with all that was charged
	}
	at, before := s.find(held, part.place.key)
	if at.overflow != part.place.overflow {
		return settled // what was charged elsewhere is not given back here
	}
	var after state
	after, settled.Applied, settled.Clamped = before.corrected(held.limit, part.mark, part.cost, actual, nowMicros)
	if settled.Applied {
		s.keep(at, after)
	}
	return settled
}
