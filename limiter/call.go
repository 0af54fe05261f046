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
	done                   // the result is there
	dropped                // the caller left before it was sent: never charged
	abandoned              // the caller left while it was sent: uncertain
)

// call is one check on its way through a lane.
type call struct {
	check      policy.Check
	peek       bool
	generation int64     // of the set the check was matched under
	lane       *lane     // that decides it; nil when no lane has to
	queuedAt   time.Time // when it was last matched
	deadline   time.Time // when the caller leaves
	waiter     *waiter
	state      atomic.Int32
	next       *call // the lane's: the next caller of the same ask

	// The result, written by whoever has the call before its state becomes
	// done: at most one of err and again, and where there is neither, decision.
	decision policy.Decision
	err      error
	again    error // match again under another set; where there is none, the answer
}

// finish hands the result to the caller, and says whether he is still there.
func (c *call) finish() bool {
	waiter := c.waiter // the call may be in use again as soon as it is done
	if !c.state.CompareAndSwap(sent, done) {
		return false
	}
	waiter.finished()
	return true
}

// leave is the caller's: nil when the call is done, else why he has no result.
// After an error the call is the lane's, and its result is not read.
func (c *call) leave() error {
	for {
		switch state := c.state.Load(); {
		case state == done:
			return nil
		case state == abandoned, state == sent && c.state.CompareAndSwap(sent, abandoned):
			return &policy.StoreError{Fault: policy.StoreUnsure, Doing: "wait for a decision", Cause: errDeadline}
		case state == dropped, state == queued && c.state.CompareAndSwap(queued, dropped):
			return errNotSent()
		}
	}
}

// hasLeft says whether the caller has left.
func (c *call) hasLeft() bool {
	state := c.state.Load()
	return state == dropped || state == abandoned
}

// outcome is what the caller of a call that is done is told; it is counted.
func (c *call) outcome(set *inForce) (policy.Decision, error) {
	switch {
	case c.err != nil:
		return policy.Decision{}, c.problem(set, c.err)
	case c.again != nil:
		return policy.Decision{}, c.again
	}
	set.counters[c.decision.Policy].decided(&c.decision)
	return c.decision, nil
}

// problem makes an error what the caller is told, and counts what is uncertain.
func (c *call) problem(set *inForce, err error) error {
	store, ok := errors.AsType[*policy.StoreError](err)
	if !ok {
		return err
	}
	if store.Fault == policy.StoreUnsure {
		set.counters[c.check.Policy].unsure()
	}
	return store.Problem()
}

var errDeadline = errors.New("no answer within the decision's deadline")

// errNotSent is for a caller who left before the store was asked.
func errNotSent() error {
	return &policy.StoreError{Fault: policy.StoreHeld, Doing: "wait in a lane", Cause: errDeadline}
}
