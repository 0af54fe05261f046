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
//	   │  ◀── lane parks it ──┘  └─ caller leaves ─▶ abandoned
//	   └─ caller leaves ─▶ dropped
const (
	queued    int32 = iota // waits in a lane; nothing is charged yet
	sent                   // on its way to the store
	done                   // the result is there
	dropped                // the caller left before it was sent: never charged
	abandoned              // the caller left while it was sent: uncertain
)

// call is one request on its way through a lane.
type call struct {
	result // written by whoever has the call before its state becomes done

	check      policy.Check // what it asks on the fast path
	peek       bool
	claim      *claim    // what it asks on the general one, nil on the fast one
	generation int64     // of the set the check was matched under
	lane       *lane     // that decides it; nil when no lane has to
	queuedAt   time.Time // when it was last matched
	deadline   time.Time // when the caller leaves
	waiter     *waiter
	state      atomic.Int32
	next       *call // the lane's: the next caller of the same ask
}

// result is what comes of a call: at most one of err and again, and where there
// is neither, decision; or, when a general lane has decided, the verdict of its
// claim.
type result struct {
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
			return c.nothingDone()
		}
	}
}

// nothingDone is why a caller who left before he was charged has no result.
func (c *call) nothingDone() error {
	if c.claim != nil && !c.claim.inProgress.IsZero() {
		return errInProgress()
	}
	return errNotSent()
}

// hasLeft says whether the caller has left.
func (c *call) hasLeft() bool {
	state := c.state.Load()
	return state == dropped || state == abandoned
}

// allowed says whether a call that is done was allowed; decided, whether it
// was decided at all.
func (c *call) allowed() (allowed, decided bool) {
	switch {
	case c.err != nil || c.again != nil:
		return false, false
	case c.hasVerdict():
		return c.claim.verdict.Allowed, true
	default:
		return c.decision.Allowed, true
	}
}

// hasVerdict says whether a general lane has decided the call.
func (c *call) hasVerdict() bool {
	return c.claim != nil && c.claim.verdict.Status != policy.ClaimAgain
}

// problem makes an error what the caller is told, and counts what is uncertain.
func (c *call) problem(set *inForce, err error) error {
	store, ok := errors.AsType[*policy.StoreError](err)
	if !ok {
		return err
	}
	if store.Fault == policy.StoreUnsure {
		c.eachPolicy(func(installed *policy.Installed) { set.counters[installed].unsure() })
	}
	return store.Problem()
}

// eachPolicy gives the policies that the call asks.
func (c *call) eachPolicy(visit func(*policy.Installed)) {
	if c.claim == nil {
		visit(c.check.Policy)
		return
	}
	for i := range c.claim.Checks {
		visit(c.claim.Checks[i].Policy)
	}
}

var errDeadline = errors.New("no answer within the decision's deadline")

// errNotSent is for a caller who left before the store was asked.
func errNotSent() error {
	return &policy.StoreError{Fault: policy.StoreHeld, Doing: "wait in a lane", Cause: errDeadline}
}
