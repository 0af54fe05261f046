package limiter

import (
	"context"
	"errors"
	"time"

	"github.com/rationhq/ration/policy"
)

// path is one of the store's ways to decide a batch. What the fast one cannot
// decide, the settling one does.
type path uint8

const (
	fast path = iota
	settling
	skippingHeld
	alone
)

// call sends the batch by this path.
func (p path) call(ctx context.Context, session Session, batch *policy.Batch, answers *policy.Answers) error {
	switch p {
	case settling:
		return session.TakeNew(ctx, policy.HoldWait, batch, answers)
	case skippingHeld:
		return session.TakeNew(ctx, policy.HoldSkip, batch, answers)
	case alone:
		return session.TakeNew(ctx, policy.HoldAlone, batch, answers)
	default:
		return session.Take(ctx, batch, answers)
	}
}

// waitsForAll says whether a held row stalls the whole batch.
func (p path) waitsForAll() bool { return p == fast || p == settling }

// decide decides a batch and answers every caller. In the common case that is
// one call of the store; a key that is new, or whose row is of an older
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
}

// decideNeighbours decides groups of which none is known to be held.
func (l *lane) decideNeighbours(ctx context.Context, groups []group) {
	again := l.attempt(ctx, fast, groups)
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
	err := l.call(ctx, path, groups)
	if isFault(err, policy.StoreStateLost) && l.recover(ctx) && !l.late() {
		err = l.call(ctx, path, groups)
	}
	switch {
	case err == nil:
		return l.answer(groups)
	case isFault(err, policy.StoreHeld) && path.waitsForAll():
		l.suspect(groups)
		l.aroundHeld(ctx, groups)
	case isFault(err, policy.StoreFaulty) && len(groups) > 1:
		// Something in the batch cannot be decided. It must not fail its neighbours, so the batch is halved until it is alone.
		half := len(groups) / 2
		return append(l.attempt(ctx, path, groups[:half]), l.attempt(ctx, path, groups[half:])...)
	case isFault(err, policy.StoreHeld) && path == alone:
		l.failHeld(groups)
	default:
		l.fail(groups, err)
	}
	return nil
}

// suspect notes what may have been held where nobody waits to find out which.
func (l *lane) suspect(groups []group) {
	if !l.late() {
		return
	}
	now := time.Now()
	for i := range groups {
		l.held.suspect(groups[i].ask.Key, now)
	}
}

// aroundHeld decides a batch that ran into its bound, and was rolled back
// whole, without the rows that others hold. Keys without a visible row may
// wait behind somebody's uncommitted insert, which cannot be skipped: they go
// one at a time.
func (l *lane) aroundHeld(ctx context.Context, groups []group) {
	rest := l.attempt(ctx, skippingHeld, groups)
	for i := range rest {
		l.failHeld(l.attempt(ctx, alone, rest[i:i+1]))
	}
}

// late says whether every caller of the batch in hand has left.
func (l *lane) late() bool { return time.Now().After(l.until) }

// call sends groups to the store as one batch.
func (l *lane) call(ctx context.Context, path path, groups []group) error {
	l.batch.Durability = l.durability
	l.batch.Generation = groups[0].first.generation
	l.batch.Asks = l.batch.Asks[:0]
	for i := range groups {
		l.batch.Asks = append(l.batch.Asks, groups[i].ask)
	}
	begun := time.Now()
	err := path.call(ctx, l.session, &l.batch, &l.answers)
	l.metrics.called(path, time.Since(begun), err)
	l.outage.called(ctx, l.durability, err)
	return err
}

// answer hands the answers of the last call to the callers of its groups and
// gives those that were not decided.
func (l *lane) answer(groups []group) (again []group) {
	if l.answers.Stale {
		for i := range groups {
			l.each(&groups[i], func(c *call, _ int32) { c.again = errStale() })
		}
		return nil
	}
	for i := range groups {
		g, answer := &groups[i], &l.answers.Asks[i]
		switch answer.Status {
		case policy.Again:
			again = append(again, *g)
		case policy.HeldByOther:
			l.failHeld(groups[i : i+1])
		case policy.Answered:
			if g.ask.Count > 0 { // a peek is answered beside a held row as well
				l.held.forget(g.ask.Key)
			}
			l.each(g, func(c *call, place int32) { c.decision = decisionOf(c, place, answer, l.answers.NowMicros) })
		}
	}
	return again
}

// decisionOf is the decision for the place-th caller of an ask, from 0: the
// first callers are those admitted, and each sees what was left behind him.
func decisionOf(c *call, place int32, answer *policy.Answer, nowMicros int64) policy.Decision {
	decision := policy.Decision{
		Policy:           c.check.Policy,
		Allowed:          place < answer.Admitted,
		Remaining:        answer.Remaining,
		ResetAtMicros:    nowMicros + answer.ResetAfterMicros,
		ResetAfterMicros: answer.ResetAfterMicros,
	}
	switch {
	case c.peek:
		decision.Allowed = answer.RetryAfterMicros == 0
		decision.RetryAfterMicros = answer.RetryAfterMicros
	case decision.Allowed:
		decision.Remaining += int64(answer.Admitted-1-place) * c.check.Cost
	default:
		decision.RetryAfterMicros = answer.RetryAfterMicros
	}
	return decision
}

// each gives every caller of a group a result and lets him go.
func (l *lane) each(g *group, result func(c *call, place int32)) {
	place := int32(0)
	for c := g.first; c != nil; place++ {
		next := c.next // c is its caller's again once it is finished
		c.next = nil
		result(c, place)
		if !c.finish() {
			l.metrics.cameLate(c)
		}
		c = next
	}
}

// fail gives every caller of the groups an error.
func (l *lane) fail(groups []group, err error) {
	for i := range groups {
		l.each(&groups[i], func(c *call, _ int32) { c.err = err })
	}
}

// failHeld answers the callers of keys that were found held, and remembers
// the keys.
func (l *lane) failHeld(groups []group) {
	now := time.Now()
	for i := range groups {
		l.held.seen(groups[i].ask.Key, now)
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
