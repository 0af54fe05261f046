package limiter

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/rationhq/ration/policy"
)

// The states of a call. The caller may leave at any moment; whoever moves the
// state first has the call.
//
//	queued ── lane takes it ──▶ sent ── answered ──▶ done
//	   └─ caller leaves ─▶ dropped    └─ caller leaves ─▶ abandoned
const (
	queued    int32 = iota // waits in a lane; nothing is charged yet
	sent                   // on its way to the store
	done                   // result is there
	dropped                // the caller left before it was sent: never charged
	abandoned              // the caller left while it was sent: uncertain
)

// call is one check on its way through a lane.
type call struct {
	check      policy.Check
	peek       bool
	generation int64 // of the set the check was matched under
	queuedAt   time.Time
	deadline   time.Time // when the caller leaves
	waiter     *waiter
	state      atomic.Int32
	next       *call // the next caller of the same ask

	counted bool // the caller's: he has left and is not waited for

	// Written by the lane before the state becomes done.
	decision policy.Decision
	err      error
	stale    bool // matched under another generation: match again
}

// finish hands the result to the caller, and says whether he is still there.
func (c *call) finish() bool {
	waiter := c.waiter // c may be in use again as soon as it is done
	if !c.state.CompareAndSwap(sent, done) {
		return false
	}
	waiter.finished()
	return true
}

// leave is the caller's: nil when the call is done, else why he has no result.
// After that the call is the lane's: he reads nothing of it any more.
func (c *call) leave() error {
	for {
		switch state := c.state.Load(); {
		case state == done:
			return nil
		case state == abandoned, state == sent && c.state.CompareAndSwap(sent, abandoned):
			return &policy.StoreError{Fault: policy.StoreUnsure, Doing: "wait for a decision", Cause: errDeadline}
		case state == dropped, state == queued && c.state.CompareAndSwap(queued, dropped):
			return &policy.StoreError{Fault: policy.StoreHeld, Doing: "wait in a lane", Cause: errDeadline}
		}
	}
}

var errDeadline = errors.New("no answer within the decision's deadline")

// waiter is one caller waiting for one or several calls.
type waiter struct {
	open  atomic.Int32
	ready chan struct{} // holds one signal, when the last open call is done
	timer *time.Timer
}

func newWaiter() *waiter {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &waiter{ready: make(chan struct{}, 1), timer: timer}
}

// finished is called once for each call.
func (w *waiter) finished() {
	if w.open.Add(-1) == 0 {
		w.ready <- struct{}{}
	}
}

// wait waits until every call is done, and says whether that came before the
// deadline and before gone is closed.
func (w *waiter) wait(deadline time.Time, gone <-chan struct{}) bool {
	w.timer.Reset(time.Until(deadline))
	defer w.timer.Stop()
	select {
	case <-w.ready:
		return true
	case <-w.timer.C:
		return false
	case <-gone:
		return false
	}
}
