package limiter

import (
	"context"
	"time"

	"github.com/rationhq/ration/policy"
)

// matchesMax bounds how often one request is matched anew because the policy
// set changed under it.
const matchesMax = 4

// single is one request on its way, with what it needs to wait.
type single struct {
	call    call
	waiter  *waiter
	matched policy.Matched
}

// Decide answers one request. A denial is a decision; errors are
// [*policy.Error], of reasons no-policy, invalid-request, cost-not-allowed,
// policy-behind, not-yet, store-unavailable, overloaded and internal.
func (l *Limiter) Decide(ctx context.Context, request *policy.Request) (policy.Decision, error) {
	s := l.singles.Get().(*single)
	s.call.deadline = l.deadline(ctx, time.Now(), request)
	for range matchesMax {
		set := l.policies.current.Load()
		settled, err := l.prepare(set, request, &s.call, &s.matched, ctx.Done())
		if !settled && err == nil {
			if err = l.send(ctx, s); err != nil {
				return policy.Decision{}, l.failed(set, &s.call, err) // s may still be the lane's: it is not reused
			}
			err = s.call.err
		}
		if err == nil && s.call.stale {
			if l.policies.other(set.Generation(), s.call.deadline, ctx.Done()) {
				continue
			}
			err = errPoliciesUnsettled()
		}
		decision := s.call.decision
		if err != nil {
			err = l.failed(set, &s.call, err)
		} else {
			set.counters[decision.Policy].decided(&decision)
		}
		s.reset()
		l.singles.Put(s)
		return decision, err
	}
	return policy.Decision{}, errPoliciesUnsettled()
}

// send queues the call and waits for its result.
func (l *Limiter) send(ctx context.Context, s *single) error {
	s.waiter.open.Store(1)
	if l.laneOf(&s.call.check).push(&s.call) == 0 {
		return errOverloaded()
	}
	if s.waiter.wait(s.call.deadline, ctx.Done()) {
		return nil
	}
	return s.call.leave()
}

// reset makes a single ready for the next request.
func (s *single) reset() {
	s.call.check = policy.Check{}
	s.call.decision = policy.Decision{}
	s.matched.Reset()
}
