package limiter

import (
	"context"
	"time"

	"github.com/rationhq/ration/policy"
)

// matchesMax bounds how often one request is matched because the policy set
// changes under it. Its deadline comes first: each time takes a call and a look
// at the policies.
const matchesMax = 1000

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
// too-many-policies, policy-unnamed, policy-behind, operation-id-reused,
// operation-in-progress, store-unavailable, overloaded and internal.
func (l *Limiter) Decide(ctx context.Context, request *policy.Request) (policy.Decision, error) {
	s := l.takeSingle()
	set, err := l.complete(ctx, request, s, (*Limiter).prepare)
	if err != nil {
		return policy.Decision{}, err
	}
	decision, err := l.outcome(ctx, set, request, &s.call)
	l.giveBack(s)
	return decision, err
}

// preparing makes a call of a request under the set in force.
type preparing func(*Limiter, context.Context, *inForce, *policy.Request, *call, *policy.Matched)

// pushing queues calls in a lane and gives how many found room: the first ones.
type pushing func(*lane, ...*call) int

// complete has the request's call done, and gives the set that it was matched
// under last. An error says that it is not done and has been left: it is the
// lane's, and s is not used again.
func (l *Limiter) complete(ctx context.Context, request *policy.Request, s *single, prepare preparing) (set *inForce, err error) {
	c := &s.call
	c.deadline = l.deadline(ctx, time.Now(), request)
	push := (*lane).push
	for range matchesMax {
		set = l.policies.current.Load()
		prepare(l, ctx, set, request, c, &s.matched)
		if err := s.send(ctx, push); err != nil {
			return nil, c.problem(set, err)
		}
		if c.again == nil || !l.policies.other(ctx, set.Generation(), c.deadline) {
			break
		}
		push = (*lane).pushAgain
	}
	return set, nil
}

func (l *Limiter) takeSingle() *single {
	if s, ok := l.singles.Get().(*single); ok {
		return s
	}
	return newSingle()
}

// giveBack makes a single ready for the next request; what it had is let go.
func (l *Limiter) giveBack(s *single) {
	s.call.check, s.call.claim, s.call.result = policy.Check{}, nil, result{}
	s.matched.Reset()
	l.singles.Put(s)
}

// send queues the call, where a lane has to decide it, and waits until it is
// done. An error says that it is not, and has been left.
func (s *single) send(ctx context.Context, push pushing) error {
	c := &s.call
	if c.lane == nil {
		return nil
	}
	s.waiter.open.Store(1)
	if push(c.lane, c) == 0 {
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
