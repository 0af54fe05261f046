package limiter

import (
	"context"

	"github.com/rationhq/ration/policy"
)

// claimsMax bounds the claims in one call of the store, which decides them one
// after the other: a larger call would near its bound, and make every row that
// it has locked wait. As many with an operation id and a slot each take 11 ms
// of 40 on an idle machine.
const claimsMax = 64

// skippedClaimsMax bounds the claims in one call around held rows: it follows
// one that ran into its bound, perhaps because the machine is busy, and has to
// end well within its own.
const skippedClaimsMax = 16

// logsMax bounds the sliding window logs in one call of the store: each is read
// and written whole, with up to 1,000 charges.
const logsMax = 32

// claims makes batches of calls of the general path, in order of arrival.
type claims struct {
	checksMax  int
	groupsMax  int // of the batch in hand, as what follows
	groups     []group
	checks     int
	logs       int                // sliding window logs
	operations map[policy.Key]int // the group of each

	batch    policy.Claims
	verdicts policy.Verdicts
}

func newClaims(config *Config) *claims {
	return &claims{
		checksMax:  config.BatchAsksMax,
		groups:     make([]group, 0, claimsMax),
		operations: make(map[policy.Key]int),
		batch:      policy.Claims{RetentionMicros: config.OperationRetention.Microseconds()},
	}
}

// take makes groups of the calls, in order of arrival; see [batcher]. When a
// claim does not fit any more, none behind it does: a claim on many policies is
// not overtaken for ever by claims on few. A claim on more than a batch should
// have goes alone.
func (b *claims) take(waiting []*call, groupsMax int) (groups []group, rest []*call) {
	b.release()
	b.groupsMax = min(claimsMax, groupsMax)
	rest = waiting[:0]
	for i, c := range waiting {
		if !b.hasRoom(c.claim) {
			rest = append(rest, waiting[i:]...)
			break
		}
		if !b.place(c) {
			rest = append(rest, c)
		}
	}
	clear(waiting[len(rest):])
	return b.groups, rest
}

// hasRoom says whether a claim fits beside those of the batch in hand.
func (b *claims) hasRoom(c *claim) bool {
	return len(b.groups) == 0 ||
		len(b.groups) < b.groupsMax && b.checks+len(c.Checks) <= b.checksMax && b.logs+policy.CountLogs(c.Checks) <= logsMax
}

// place puts a call into the group of the claim that it repeats, or makes one
// for it, or drops it; false leaves it waiting. What is another request under
// the operation id of one in the batch waits for that one's outcome.
func (b *claims) place(c *call) bool {
	place, deciding := b.operations[c.claim.Operation]
	switch {
	case c.state.Load() != queued:
		return true
	case len(b.groups) > 0 && c.generation != b.groups[0].first.generation:
		return false
	case deciding && !c.claim.repeats(b.groups[place].claim):
		return false
	case !c.state.CompareAndSwap(queued, sent):
		return true
	case !deciding:
		place = len(b.groups)
		if c.claim.hasOperation() {
			b.operations[c.claim.Operation] = place
		}
		b.groups = append(b.groups, group{claim: c.claim})
		b.checks += len(c.claim.Checks)
		b.logs += policy.CountLogs(c.claim.Checks)
	}
	b.groups[place].add(c)
	return true
}

// release lets go of the calls of the last batch.
func (b *claims) release() {
	clear(b.groups)
	b.groups, b.checks, b.logs = b.groups[:0], 0, 0
	clear(b.operations)
	clear(b.batch.Claims[:cap(b.batch.Claims)])
}

// send sends groups as one call of decide_v1.
func (b *claims) send(ctx context.Context, session Session, path path, groups []group) (stale bool, err error) {
	b.batch.Generation = groups[0].first.generation
	b.batch.Claims = b.batch.Claims[:0]
	for i := range groups {
		b.batch.Claims = append(b.batch.Claims, groups[i].claim.Claim)
	}
	err = session.Decide(ctx, path.hold(), &b.batch, &b.verdicts)
	return b.verdicts.Stale, err
}

// answer hands out what the last call was answered.
func (b *claims) answer(l *lane, groups []group) (again []group) {
	for i := range groups {
		g, verdict := &groups[i], &b.verdicts.Verdicts[i]
		switch verdict.Status {
		case policy.ClaimAgain:
			again = append(again, *g)
		case policy.ClaimDecided:
			l.decided(g, verdict)
		case policy.ClaimReplayed:
			l.each(g, func(c *call, _ int32) { c.claim.answered(verdict, policy.ClaimReplayed) })
		case policy.ClaimReused:
			l.each(g, func(c *call, _ int32) { c.err = errReused() })
		case policy.ClaimInProgress:
			l.park(g)
		case policy.ClaimHeld:
			l.failHeld(groups[i : i+1])
		case policy.ClaimUnknown:
			l.each(g, func(c *call, _ int32) { c.result = c.claim.unknown })
		}
	}
	return again
}

// decided answers the callers of a claim: the first has it decided, who repeats
// it is told the same. A claim that took something has had all its rows: none
// of them is held. One that was denied locked none, and ends no more than a
// guess.
func (l *lane) decided(g *group, verdict *policy.Verdict) {
	switch {
	case !g.charges():
	case verdict.Allowed:
		l.held.forget(g.name())
		for key := range g.keys {
			l.held.forget(key)
		}
	default:
		for key := range g.keys {
			l.held.forgetGuess(key)
		}
	}
	status := policy.ClaimDecided
	l.each(g, func(c *call, _ int32) {
		c.claim.answered(verdict, status)
		status = policy.ClaimReplayed
	})
}

// errReused answers a request whose operation id belongs to another one.
func errReused() error {
	return &policy.Error{
		Code: policy.CodeInvalid, Reason: policy.ReasonOperationReused,
		Detail: "The operation id belongs to another request; this one did nothing. A new request takes a new id.",
	}
}
