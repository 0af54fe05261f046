package limiter

import (
	"context"

	"github.com/rationhq/ration/policy"
)

// asks makes batches of calls that each ask one token bucket.
type asks struct {
	*gathering

	batch   policy.Batch
	answers policy.Answers
}

// send sends groups as one batch, by the fast path or the settling one.
func (a *asks) send(ctx context.Context, session Session, path path, groups []group) (stale bool, err error) {
	a.batch.Generation = groups[0].first.generation
	a.batch.Asks = a.batch.Asks[:0]
	for i := range groups {
		a.batch.Asks = append(a.batch.Asks, groups[i].ask)
	}
	if path == fast {
		err = session.Take(ctx, &a.batch, &a.answers)
	} else {
		err = session.TakeNew(ctx, path.hold(), &a.batch, &a.answers)
	}
	return a.answers.Stale, err
}

// answer hands out what the last batch was answered.
func (a *asks) answer(l *lane, groups []group) (again []group) {
	for i := range groups {
		g, answer := &groups[i], &a.answers.Asks[i]
		switch answer.Status {
		case policy.Again:
			again = append(again, *g)
		case policy.HeldByOther:
			l.failHeld(groups[i : i+1])
		case policy.Answered:
			if g.charges() { // a peek is answered beside a held row as well
				l.held.forget(g.ask.Key)
			}
			l.each(g, func(c *call, place int32) { c.decision = decisionOf(c, place, answer, a.answers.NowMicros) })
		}
	}
	return again
}

// decisionOf is the decision for the place-th caller of an ask, from 0: the
// first callers are those admitted, and each sees what was left behind him.
func decisionOf(c *call, place int32, answer *policy.Answer, nowMicros int64) policy.Decision {
	decision := policy.Decision{
		Policy:           c.check.Policy,
		Allowed:          place < answer.Admitted,
		Remaining:        answer.Remaining,
		AtMicros:         nowMicros,
		ResetAfterMicros: answer.ResetAfterMicros,
	}
	switch {
	case c.peek:
		decision.Allowed = answer.RetryAfterMicros == 0
		decision.RetryAfterMicros = answer.RetryAfterMicros
	case decision.Allowed:
		decision.Remaining += int64(answer.Admitted-1-place) * c.check.Cost
	default:
		decision.RetryAfterMicros = answer.RetryAfterMicros
	}
	return decision
}
