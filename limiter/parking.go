package limiter

import (
	"time"

	"github.com/rationhq/ration/policy"
)

// parkInterval is how often a parked call is asked again: a few round trips,
// so that a duplicate has its answer soon after the first has.
const parkInterval = 5 * time.Millisecond

// parkMax is how long a call is asked again before its caller is told that
// its operation is still being decided: as long as the call that decides it may
// take, the default of statement_timeout (configure_roles_v1).
const parkMax = 40 * time.Millisecond

// parking holds calls whose operation another call is deciding. It does not
// keep the lane from others, and what it holds counts as waiting: it is
// bounded with the queue.
type parking struct {
	calls []*call
	until time.Time // when they are asked again
}

// park keeps the calls of a group to be asked again.
func (l *lane) park(g *group) {
	now := time.Now()
	for c := g.first; c != nil; {
		next := c.next
		c.next = nil
		l.parkCall(c, now)
		c = next
	}
}

// parkCall keeps a call to be asked again, and answers it when that has been
// done long enough or there is no room for it.
func (l *lane) parkCall(c *call, now time.Time) {
	if c.claim.inProgress.IsZero() {
		c.claim.inProgress = now
	}
	if now.Sub(c.claim.inProgress) >= parkMax || !l.takenBack() {
		c.err = errInProgress()
		l.finish(c)
		return
	}
	c.queuedAt = now
	if !c.state.CompareAndSwap(sent, queued) {
		l.taken(1)
		c.err = errInProgress()
		l.metrics.cameLate(c)
		return
	}
	if len(l.parking.calls) == 0 {
		l.parking.until = now.Add(parkInterval)
		time.AfterFunc(parkInterval, l.signal)
	}
	l.parking.calls = append(l.parking.calls, c)
}

// unpark puts what was parked long enough behind what waits.
func (l *lane) unpark() {
	if len(l.parking.calls) == 0 || time.Now().Before(l.parking.until) {
		return
	}
	l.backlog = append(l.backlog, l.parking.calls...)
	clear(l.parking.calls)
	l.parking.calls = l.parking.calls[:0]
}

// errInProgress answers a duplicate of an operation that is being decided.
func errInProgress() error {
	return &policy.Error{
		Code: policy.CodeConflict, Reason: policy.ReasonOperationInProgress,
		Detail: "Another request with this operation id is being decided; this one did nothing.",
	}
}
