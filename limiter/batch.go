package limiter

import (
	"context"
	"time"

	"github.com/rationhq/ration/policy"
)

// many is a batch of requests on its way, with what it needs to wait.
type many struct {
	calls    []call
	open     []int // indexes of what has to be matched, ascending
	arriving []*call
	waiter   *waiter
	matched  policy.Matched
}

// DecideBatch answers requests[i] in results[i]; both have the same length.
// One request's failure is its own result's, with the errors of
// [Limiter.Decide], and so is its deadline.
func (l *Limiter) DecideBatch(ctx context.Context, requests []*policy.Request, results []policy.Result) {
	m, ok := l.manies.Get().(*many)
	if !ok {
		m = &many{waiter: newWaiter()}
	}
	latest := l.begin(ctx, m, requests)
	left, push := false, pushing((*lane).push)
	for range matchesMax {
		set := l.policies.current.Load()
		for _, i := range m.open {
			l.prepare(ctx, set, requests[i], &m.calls[i], &m.matched)
		}
		if m.send(l.lanes, push) > 0 {
			left = m.wait(ctx.Done()) || left
		}
		l.collect(ctx, set, m, requests, results)
		if len(m.open) == 0 || !l.policies.other(ctx, set.Generation(), latest) {
			break
		}
		push = (*lane).pushAgain
	}
	if !left { // what was left is the lanes', which write into it
		m.reset()
		l.manies.Put(m)
	}
}

// begin makes a call for each request and gives the latest of their deadlines.
func (l *Limiter) begin(ctx context.Context, m *many, requests []*policy.Request) (latest time.Time) {
	if cap(m.calls) < len(requests) {
		m.calls = make([]call, len(requests))
	}
	m.calls = m.calls[:len(requests)]
	now := time.Now()
	for i, request := range requests {
		c := &m.calls[i]
		c.waiter = m.waiter
		c.deadline = l.deadline(ctx, now, request)
		if c.deadline.After(latest) {
			latest = c.deadline
		}
		m.open = append(m.open, i)
	}
	return latest
}

// send queues what lanes have to decide, each lane's share at once, and gives
// how many calls that is. Those that find no room are done.
func (m *many) send(lanes [kindCount][]*lane, push pushing) (calls int) {
	for _, i := range m.open {
		if m.calls[i].lane != nil {
			calls++
		}
	}
	m.waiter.open.Store(int32(calls))
	for _, of := range lanes {
		for _, lane := range of {
			m.arriving = m.arriving[:0]
			for _, i := range m.open {
				if c := &m.calls[i]; c.lane == lane {
					m.arriving = append(m.arriving, c)
				}
			}
			for _, c := range m.arriving[push(lane, m.arriving...):] {
				c.err = errOverloaded()
				c.state.Store(done)
				m.waiter.finished()
			}
		}
	}
	return calls
}

// wait waits until every call is done or its own deadline has passed, and says
// whether any was left undone.
func (m *many) wait(gone <-chan struct{}) (left bool) {
	for {
		next, waiting := m.nextDeadline()
		if !waiting {
			<-m.waiter.ready // the last one is done and about to say so
			return left
		}
		if m.waiter.wait(next, gone) {
			return left
		}
		everybody := isClosed(gone)
		for _, i := range m.open {
			c := &m.calls[i]
			if (everybody || !c.deadline.After(next)) && !c.hasLeft() && c.leave() != nil {
				left = true
				m.waiter.finished()
			}
		}
	}
}

func isClosed(gone <-chan struct{}) bool {
	select {
	case <-gone:
		return true
	default:
		return false
	}
}

// nextDeadline is the first deadline of what is waited for, if anything is.
func (m *many) nextDeadline() (next time.Time, waiting bool) {
	for _, i := range m.open {
		c := &m.calls[i]
		if state := c.state.Load(); state != queued && state != sent {
			continue
		}
		if !waiting || c.deadline.Before(next) {
			next, waiting = c.deadline, true
		}
	}
	return next, waiting
}

// collect answers what was open; what has to be matched again stays so, with
// the answer in case it cannot be.
func (l *Limiter) collect(ctx context.Context, set *inForce, m *many, requests []*policy.Request, results []policy.Result) {
	again := m.open[:0]
	for _, i := range m.open {
		c := &m.calls[i]
		if err := c.leave(); err != nil {
			results[i] = policy.Result{Err: c.problem(set, err)}
			continue
		}
		decision, err := l.outcome(ctx, set, requests[i], c)
		results[i] = policy.Result{Decision: decision, Err: err}
		if c.again != nil {
			again = append(again, i)
		}
	}
	m.open = again
}

// reset makes a batch ready for the next one; what it had is let go.
func (m *many) reset() {
	clear(m.calls)
	m.open = m.open[:0]
	clear(m.arriving[:cap(m.arriving)])
	m.matched.Reset()
}
