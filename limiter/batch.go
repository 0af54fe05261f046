package limiter

import (
	"context"
	"time"

	"github.com/rationhq/ration/policy"
)

// many is a batch of requests on its way.
type many struct {
	requests []*policy.Request
	results  []policy.Result
	calls    []call
	open     []int // indexes of what is not answered yet
	begun    time.Time
}

// DecideBatch answers requests[i] in results[i]; both have the same length.
// One request's failure is its own result's, with the errors of
// [Limiter.Decide].
func (l *Limiter) DecideBatch(ctx context.Context, requests []*policy.Request, results []policy.Result) {
	m := &many{requests: requests, results: results, calls: make([]call, len(requests)), open: make([]int, len(requests)),
		begun: time.Now()}
	for i := range m.open {
		m.open[i] = i
	}
	for range matchesMax {
		set := l.policies.current.Load()
		m.open = l.decideOpen(ctx, set, m)
		if len(m.open) == 0 {
			return
		}
		if !l.policies.other(set.Generation(), m.calls[m.open[0]].deadline, ctx.Done()) {
			break
		}
	}
	for _, i := range m.open {
		results[i] = policy.Result{Err: errPoliciesUnsettled()}
	}
}

// decideOpen matches the open requests under one set, sends them and waits;
// it gives those that have to be matched again.
func (l *Limiter) decideOpen(ctx context.Context, set *inForce, m *many) (again []int) {
	waiter := newWaiter()
	var matched policy.Matched
	byLane := make(map[*lane][]*call)
	for _, i := range m.open {
		c := &m.calls[i]
		c.waiter = waiter
		c.deadline = l.deadline(ctx, m.begun, m.requests[i])
		settled, err := l.prepare(set, m.requests[i], c, &matched, ctx.Done())
		if err != nil || settled {
			c.err = err
			c.state.Store(done)
			continue
		}
		waiter.open.Add(1)
		lane := l.laneOf(&c.check)
		byLane[lane] = append(byLane[lane], c)
	}
	waiting := waiter.open.Load() > 0
	for lane, calls := range byLane {
		for _, c := range calls[lane.push(calls...):] {
			c.err = errOverloaded()
			c.state.Store(done)
			waiter.finished()
		}
	}
	if waiting {
		m.wait(waiter, ctx.Done())
	}
	for _, i := range m.open {
		c := &m.calls[i]
		err := c.leave()
		if err == nil {
			err = c.err
		}
		switch {
		case err != nil:
			m.results[i] = policy.Result{Err: l.failed(set, c, err)}
		case c.stale:
			again = append(again, i)
		default:
			set.counters[c.decision.Policy].decided(&c.decision)
			m.results[i] = policy.Result{Decision: c.decision}
		}
	}
	return again
}

// wait waits until every call is done or its own deadline has passed.
func (m *many) wait(waiter *waiter, gone <-chan struct{}) {
	for {
		var next time.Time
		for _, i := range m.open {
			c := &m.calls[i]
			if !c.counted && c.state.Load() != done && (next.IsZero() || c.deadline.Before(next)) {
				next = c.deadline
			}
		}
		if next.IsZero() {
			<-waiter.ready // the last one is done and about to say so
			return
		}
		if waiter.wait(next, gone) {
			return
		}
		select {
		case <-gone:
			return
		default:
		}
		for _, i := range m.open {
			if c := &m.calls[i]; !c.deadline.After(next) && c.leave() != nil && !c.counted {
				c.counted = true
				waiter.finished()
			}
		}
	}
}
