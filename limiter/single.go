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

func newSingle() *single {
	s := &single{waiter: newWaiter()}
	s.call.waiter = s.waiter
	return s
}

// Decide answers one request. A denial is a decision; errors are
// [*policy.Error], of reasons no-policy, invalid-request, cost-not-allowed,
// policy-behind, not-yet, store-unavailable, overloaded and internal.
func (l *Limiter) Decide(ctx context.Context, request *policy.Request) (policy.Decision, error) {
	s, ok := l.singles.Get().(*single)
	if !ok {
		s = newSingle()
	}
	c := &s.call
	c.deadline = l.deadline(ctx, time.Now(), request)
	var set *inForce
	for range matchesMax {
		set = l.policies.current.Load()
		l.prepare(ctx, set, request, c, &s.matched)
		if err := s.send(ctx); err != nil {
			return policy.Decision{}, c.problem(set, err) // the call is the lane's: s is not used again
		}
		if c.again == nil || !l.policies.other(ctx, set.Generation(), c.deadline) {
			break
		}
	}
	decision, err := c.outcome(set)
	s.reset()
	l.singles.Put(s)
	return decision, err
}

// send queues the call, where a lane has to decide it, and waits until it is
// done. An error says that it is not, and has been left.
func (s *single) send(ctx context.Context) error {
	c := &s.call
	if c.lane == nil {
		return nil
	}
	s.waiter.open.Store(1)
	if c.lane.push(c) == 0 {
		c.err = errOverloaded()
		return nil
	}
	if s.waiter.wait(c.deadline, ctx.Done()) {
		return nil
	}
	if err := c.leave(); err != nil {
		return err
	}
	<-s.waiter.ready // done meanwhile: the signal is on its way, and must not meet the next request
	return nil
}

// reset makes a single ready for the next request; what it had is let go.
func (s *single) reset() {
	s.call.check = policy.Check{}
	s.call.decision = policy.Decision{}
	s.call.err, s.call.again = nil, nil
	s.matched.Reset()
}
