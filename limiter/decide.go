package limiter

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rationhq/ration/policy"
)

// path is one of the ways to have a batch decided. What the fast one cannot
// decide, the settling one does.
type path uint8

const (
	fast path = iota // without locking rows before they are written
	settling
	skippingHeld
	alone
)

// hold is what a path does about rows that others hold.
func (p path) hold() policy.Hold {
	switch p {
	case fast:
		return policy.HoldTry
	case skippingHeld:
		return policy.HoldSkip
	case alone:
		return policy.HoldAlone
	default:
		return policy.HoldWait
	}
}

// waitsForAll says whether a held row stalls the whole batch.
func (p path) waitsForAll() bool { return p == fast || p == settling }

// decide decides a batch and answers every caller. In the common case that is
// one call of the store; an ask whose key is new, or whose row is of an older
// version, takes two; one that the cleaner removed in between takes three.
// Keys that were seen held go apart from their neighbours and after them.
func (l *lane) decide(ctx context.Context, groups []group) {
	l.metrics.batchSent(groups)
	l.until = time.Now().Add(l.waitMax)
	neighbours, held := l.setApart(groups)
	if len(neighbours) > 0 {
		l.decideNeighbours(ctx, neighbours)
	}
	if len(held) > 0 {
		l.decideHeld(ctx, held)
	}
	l.pace.ended(len(groups))
}

// decideNeighbours decides groups of which none is known to be held.
func (l *lane) decideNeighbours(ctx context.Context, groups []group) {
	path := l.rivals.path()
	again := l.attempt(ctx, path, groups)
	if l.kind.general() && path == fast {
		l.rivals.met(len(again) > 0)
	}
	for range 2 {
		if len(again) > 0 {
			again = l.attempt(ctx, settling, again)
		}
	}
	if len(again) > 0 {
		l.fail(again, errHeld())
	}
}

// attempt makes one call and answers whom it can; it gives the groups that
// the call left undecided. A call that failed is followed by what mends it,
// while anybody can still be waiting: a charge that comes later helps nobody.
func (l *lane) attempt(ctx context.Context, path path, groups []group) (again []group) {
	if l.late() {
		l.fail(groups, errHeld())
		return nil
	}
	stale, err := l.call(ctx, path, groups)
	if isFault(err, policy.StoreStateLost) && l.recover(ctx) && !l.late() {
		stale, err = l.call(ctx, path, groups)
	}
	tooMuch := isFault(err, policy.StoreHeld) && path == skippingHeld // which waits for nobody
	if tooMuch {
		l.pace.slow(len(groups))
	}
	switch {
	case err == nil && stale:
		l.matchAgain(groups)
	case err == nil:
		return l.batcher.answer(l, groups)
	case isFault(err, policy.StoreHeld) && path.waitsForAll():
		l.guess(groups)
		l.aroundHeld(ctx, groups)
	case len(groups) > 1 && (isFault(err, policy.StoreFaulty) || tooMuch):
		// Something in the batch cannot be decided, or all of it takes longer than a call may. That must not fail the
		// neighbours, so the batch is halved until it is alone.
		half := len(groups) / 2
		return append(l.attempt(ctx, path, groups[:half]), l.attempt(ctx, path, groups[half:])...)
	case isFault(err, policy.StoreHeld) && path == alone:
		l.failHeld(groups)
	default:
		l.fail(groups, err)
	}
	return nil
}

// guess notes what may have been held where nobody waits to find out which.
func (l *lane) guess(groups []group) {
	if !l.late() {
		return
	}
	now := time.Now()
	for i := range groups {
		for key := range groups[i].keys {
			l.held.guess(key, now)
		}
	}
}

// aroundHeld decides a batch that ran into its bound, and was rolled back
// whole, without the rows that others hold. Keys without a visible row may
// wait behind somebody's uncommitted insert, which cannot be skipped: they go
// one at a time.
func (l *lane) aroundHeld(ctx context.Context, groups []group) {
	rest := l.skipHeld(ctx, groups)
	for i := range rest {
		l.failHeld(l.attempt(ctx, alone, rest[i:i+1]))
	}
}

// skipHeld decides groups without the rows that others hold, and gives those
// that it left.
func (l *lane) skipHeld(ctx context.Context, groups []group) (rest []group) {
	for len(groups) > 0 {
		n := min(len(groups), l.kind.skippedMax(), l.pace.max())
		rest = append(rest, l.attempt(ctx, skippingHeld, groups[:n])...)
		groups = groups[n:]
	}
	return rest
}

// late says whether every caller of the batch in hand has left.
func (l *lane) late() bool { return time.Now().After(l.until) }

// call sends groups to the store as one call.
func (l *lane) call(ctx context.Context, path path, groups []group) (stale bool, err error) {
	begun := time.Now()
	stale, err = l.batcher.send(ctx, l.session, path, groups)
	l.metrics.called(l.kind.function(path), time.Since(begun), err)
	l.outage.called(ctx, l.kind, err)
	return stale, err
}

// matchAgain gives groups back that were matched under another policy set than
// the store's, and with them whatever waits that was matched under the same.
func (l *lane) matchAgain(groups []group) {
	generation := groups[0].first.generation
	for i := range groups {
		l.each(&groups[i], func(c *call, _ int32) { c.again = errStale() })
	}
	l.collect()
	before := len(l.backlog)
	l.backlog = slices.DeleteFunc(l.backlog, func(c *call) bool {
		if c.generation != generation || !c.state.CompareAndSwap(queued, sent) {
			return false
		}
		c.again = errStale()
		l.finish(c)
		return true
	})
	l.taken(before - len(l.backlog))
}

// each gives every caller of a group a result and lets him go.
func (l *lane) each(g *group, result func(c *call, place int32)) {
	place := int32(0)
	for c := g.first; c != nil; place++ {
		next := c.next // c is its caller's again once it is finished
		c.next = nil
		result(c, place)
		l.finish(c)
		c = next
	}
}

// finish lets the caller of a call that has its result go.
func (l *lane) finish(c *call) {
	if !c.finish() {
		l.metrics.cameLate(c)
	}
}

// fail gives every caller of the groups an error.
func (l *lane) fail(groups []group, err error) {
	for i := range groups {
		l.each(&groups[i], func(c *call, _ int32) { c.err = err })
	}
}

// failHeld answers the callers of groups that were found held, and remembers
// them. Of several keys one is held, and which is not known: only the same keys
// together are not asked for a while, and each of them is asked apart.
func (l *lane) failHeld(groups []group) {
	now := time.Now()
	for i := range groups {
		l.held.seen(groups[i].name(), now)
		for key := range groups[i].keys {
			l.held.suspect(key, now)
		}
	}
	l.fail(groups, errHeld())
}

func isFault(err error, fault policy.StoreFault) bool {
	store, ok := errors.AsType[*policy.StoreError](err)
	return ok && store.Fault == fault
}

var errRowHeld = errors.New("another session holds the key's row")

// errHeld answers the callers of a row that somebody else holds.
func errHeld() error {
	return &policy.StoreError{Fault: policy.StoreHeld, Doing: "decide", Cause: errRowHeld}
}
