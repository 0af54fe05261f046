package memstore

import (
	"context"
	"slices"

	"github.com/rationhq/ration/policy"
)

// DecideClaims answers claims one after the other, at claims.NowMicros. Claims
// that were matched under another generation are stale: nothing is decided. A
// check of a policy that the store does not hold is a fault of the caller's
// program (CodeInternal), and nothing is charged. The verdicts' slice is used
// again when it is long enough.
func (s *Store) DecideClaims(_ context.Context, claims *policy.Claims, verdicts *policy.Verdicts) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	verdicts.Verdicts = verdicts.Verdicts[:0]
	verdicts.NowMicros = claims.NowMicros
	verdicts.Stale = claims.Generation != s.generation
	if verdicts.Stale {
		return nil
	}
	for i := range claims.Claims {
		for _, check := range claims.Claims[i].Checks {
			if _, err := s.ledger(check.Policy.Number); err != nil {
				return err
			}
		}
	}
	for i := range claims.Claims {
		verdict := s.verdict(&claims.Claims[i], claims.NowMicros, claims.RetentionMicros)
		verdicts.Verdicts = append(verdicts.Verdicts, verdict)
	}
	return nil
}

// verdict decides one claim, or finds what was decided under its operation id.
func (s *Store) verdict(claim *policy.Claim, nowMicros, retentionMicros int64) policy.Verdict {
	none := policy.Key{}
	if claim.Operation == none {
		verdict, _ := s.decideClaim(claim, nowMicros)
		return verdict
	}
	if op, known := s.operations[claim.Operation]; known {
		return op.repeated(claim)
	}
	if len(claim.Checks) == 0 {
		return policy.Verdict{Status: policy.ClaimUnknown}
	}
	verdict, charged := s.decideClaim(claim, nowMicros)
	if len(s.operations) < s.entriesMax {
		s.operations[claim.Operation] = newOperation(claim, verdict, charged, nowMicros+retentionMicros)
	}
	return verdict
}

// decideClaim checks every policy of a claim and then charges all that allow
// it, or none. It gives what it charged, in the order of the checks.
func (s *Store) decideClaim(claim *policy.Claim, nowMicros int64) (verdict policy.Verdict, charged []chargedPart) {
	verdict = policy.Verdict{Status: policy.ClaimDecided, Allowed: true, AtMicros: nowMicros}
	places := make([]place, len(claim.Checks))
	states := make([]state, len(claim.Checks))
	noSlots := len(s.slots)+len(claim.Checks) > s.entriesMax
	for i, check := range claim.Checks {
		held := s.policies[check.Policy.Number-1]
		places[i], states[i] = s.find(held, check.Key)
		wait := held.limit.retryAfterMicros(states[i], check.Cost, nowMicros)
		if wait == 0 && noSlots && held.limit.algorithm == policy.Concurrency {
			wait = held.limit.span // by then every slot of this limit has ended
		}
		verdict.Parts = append(verdict.Parts, policy.Part{
			Policy: held.policy.Number, Version: held.policy.Version, Allowed: wait == 0, RetryAfterMicros: wait,
		})
		if wait != 0 && held.policy.Mode == policy.Enforce {
			verdict.Allowed = false
		}
	}
	for i, check := range claim.Checks {
		part := &verdict.Parts[i]
		if verdict.Allowed && part.Allowed && !claim.Peek {
			var made chargedPart
			made, states[i] = s.charge(check, places[i], states[i], part, nowMicros)
			charged = append(charged, made)
		}
		rule := places[i].ledger.limit
		part.Remaining = states[i].remaining(rule, nowMicros)
		part.ResetAfterMicros = states[i].resetMicros(rule, nowMicros)
	}
	return verdict, charged
}

// charge takes one policy's part of a claim.
func (s *Store) charge(
	check policy.Check, at place, before state, part *policy.Part, nowMicros int64,
) (made chargedPart, after state) {
	made = chargedPart{place: at, version: part.Version, cost: check.Cost, priced: check.Priced}
	if rule := at.ledger.limit; rule.algorithm == policy.Concurrency {
		after, part.Slot = s.acquire(at, before, check.Cost, nowMicros)
	} else {
		after, made.mark = before.charged(rule, check.Cost, nowMicros)
	}
	part.Cost = check.Cost
	s.keep(at, after)
	return made, after
}

// clone is a verdict whose parts are its own.
func clone(v policy.Verdict) policy.Verdict {
	v.Parts = slices.Clone(v.Parts)
	return v
}
