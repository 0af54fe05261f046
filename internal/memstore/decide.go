package memstore

import (
	"context"
	"slices"

	"github.com/rationhq/ration/policy"
)

// Decide answers a batch, whose NowMicros is the clock. A batch that was
// matched under another generation is stale: nothing is decided. An ask that
// names a policy the store does not hold, holds with another durability, or
// that is no token bucket, is a fault of the caller's program (CodeInternal),
// and nothing is charged.
// The answers' slice is used again when it is long enough.
func (s *Store) Decide(_ context.Context, batch *policy.Batch, answers *policy.Answers) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	answers.Asks = answers.Asks[:0]
	answers.NowMicros = batch.NowMicros
	answers.Stale = batch.Generation != s.generation
	if answers.Stale {
		return nil
	}
	for i := range batch.Asks {
		if err := s.holds(batch.Asks[i].Policy, batch.Durability); err != nil {
			return err
		}
	}
	answers.Asks = slices.Grow(answers.Asks, len(batch.Asks))
	for _, ask := range batch.Asks {
		answers.Asks = append(answers.Asks, s.answer(ask, batch.NowMicros))
	}
	return nil
}

// holds checks that a policy is here, is a token bucket and keeps its state in
// the batch's kind of tables.
func (s *Store) holds(number int32, d policy.Durability) error {
	held, err := s.ledger(number)
	switch {
	case err != nil:
		return err
	case held.policy.Spec.Durability != d:
		return internal("policy %q is asked in a %s batch", held.policy.ID, d)
	case held.limit.algorithm != policy.TokenBucket:
		return internal("policy %q is asked in a batch of token buckets", held.policy.ID)
	}
	return nil
}

// answer decides one ask and keeps what it leaves. A denial leaves nothing
// new, and neither does a peek.
func (s *Store) answer(ask policy.Ask, nowMicros int64) policy.Answer {
	held := s.policies[ask.Policy-1]
	place, before := s.find(held, ask.Key)
	after, answer := held.limit.serve(before.(bucket), ask, nowMicros) //nolint:forcetypeassert // holds has looked
	if answer.Admitted > 0 {
		s.keep(place, after)
	}
	return answer
}

// serve lets the callers of an ask take their cost one after the other, until
// one cannot. Those behind it want the same at the same instant and cannot
// either.
func (l limit) serve(b bucket, ask policy.Ask, nowMicros int64) (bucket, policy.Answer) {
	cost := tokens(ask.Cost)
	var answer policy.Answer
	for admitted := true; admitted && answer.Admitted < ask.Count; {
		if b, admitted = b.take(l, cost, nowMicros); admitted {
			answer.Admitted++
		}
	}
	answer.Remaining = b.remaining(l, nowMicros)
	answer.ResetAfterMicros = b.resetMicros(l, nowMicros)
	answer.RetryAfterMicros = policy.Never
	if cost.Cmp(l.capacity) <= 0 {
		answer.RetryAfterMicros = b.waitMicros(l, cost, nowMicros)
	}
	return b, answer
}
