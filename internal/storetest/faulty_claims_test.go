package storetest

import (
	"context"
	"slices"

	"github.com/rationhq/ration/policy"
)

// bending changes the limits that it is given.
type bending struct {
	Store

	bend func(*policy.Limit)
}

func (b bending) Install(
	ctx context.Context, id string, change *policy.Change, expected int, nowMicros int64,
) (*policy.Installed, error) {
	bent, spec := *change, *change.Spec
	b.bend(&spec.Limit)
	bent.Spec = &spec
	return b.Store.Install(ctx, id, &bent, expected, nowMicros)
}

// shortenFixed makes windows that drift away from the epoch.
func shortenFixed(l *policy.Limit) {
	if l.Algorithm == policy.FixedWindow {
		l.SpanMicros--
	}
}

func forgetPrevious(l *policy.Limit) {
	if l.Algorithm == policy.SlidingWindowCounter && !l.Strict {
		l.Algorithm = policy.FixedWindow
	}
}

func neverStrict(l *policy.Limit) { l.Strict = false }

func lengthenLog(l *policy.Limit) {
	if l.Algorithm == policy.SlidingWindowLog {
		l.SpanMicros++
	}
}

func shortenSlots(l *policy.Limit) {
	if l.Algorithm == policy.Concurrency {
		l.SpanMicros--
	}
}

// grasping asks the policies of a claim one after the other, so that a denial
// leaves charged what came before it.
type grasping struct{ Store }

func (g grasping) DecideClaims(ctx context.Context, claims *policy.Claims, verdicts *policy.Verdicts) error {
	var all policy.Verdicts
	for _, claim := range claims.Claims {
		if claim.Operation != (policy.Key{}) || len(claim.Checks) < 2 {
			if err := g.one(ctx, claims, claim, &all); err != nil {
				return err
			}
			continue
		}
		merged := policy.Verdict{Status: policy.ClaimDecided, Allowed: true, AtMicros: claims.NowMicros}
		for _, check := range claim.Checks {
			claim.Checks = []policy.Check{check}
			var single policy.Verdicts
			if err := g.one(ctx, claims, claim, &single); err != nil {
				return err
			}
			if all.Stale = single.Stale; all.Stale {
				break
			}
			merged.Allowed = merged.Allowed && single.Verdicts[0].Allowed
			merged.Parts = append(merged.Parts, single.Verdicts[0].Parts...)
		}
		all.Verdicts = append(all.Verdicts, merged)
	}
	all.NowMicros = claims.NowMicros
	*verdicts = all
	return nil
}

// one decides one claim of a call and adds its verdict.
func (g grasping) one(ctx context.Context, of *policy.Claims, claim policy.Claim, all *policy.Verdicts) error {
	call := *of
	call.Claims = []policy.Claim{claim}
	var verdicts policy.Verdicts
	err := g.Store.DecideClaims(ctx, &call, &verdicts)
	all.Stale = all.Stale || verdicts.Stale
	all.Verdicts = append(all.Verdicts, verdicts.Verdicts...)
	return err
}

// shy denies what any policy denies.
type shy struct{ Store }

func (s shy) DecideClaims(ctx context.Context, claims *policy.Claims, verdicts *policy.Verdicts) error {
	err := s.Store.DecideClaims(ctx, claims, verdicts)
	for i := range verdicts.Verdicts {
		verdict := &verdicts.Verdicts[i]
		if slices.ContainsFunc(verdict.Parts, func(p policy.Part) bool { return !p.Allowed }) {
			verdict.Allowed = false
		}
	}
	return err
}

// backwards decides the last claim of a call first.
type backwards struct{ Store }

func (b backwards) DecideClaims(ctx context.Context, claims *policy.Claims, verdicts *policy.Verdicts) error {
	turned := *claims
	turned.Claims = slices.Clone(claims.Claims)
	slices.Reverse(turned.Claims)
	err := b.Store.DecideClaims(ctx, &turned, verdicts)
	slices.Reverse(verdicts.Verdicts)
	return err
}

// oblivious takes a cost that is stated the second time for another one.
type oblivious struct{ Store }

func (o oblivious) DecideClaims(ctx context.Context, claims *policy.Claims, verdicts *policy.Verdicts) error {
	changed := *claims
	changed.Claims = slices.Clone(claims.Claims)
	for i := range changed.Claims {
		changed.Claims[i].Stated++
	}
	return o.Store.DecideClaims(ctx, &changed, verdicts)
}

// trusting does not look at the content of a repeat.
type trusting struct{ Store }

func (t trusting) DecideClaims(ctx context.Context, claims *policy.Claims, verdicts *policy.Verdicts) error {
	changed := *claims
	changed.Claims = slices.Clone(claims.Claims)
	for i := range changed.Claims {
		changed.Claims[i].Content = policy.Key{}
	}
	return t.Store.DecideClaims(ctx, &changed, verdicts)
}

// yielding takes a second settlement for a repeat of the first.
type yielding struct{ Store }

func (y yielding) Settle(ctx context.Context, settlement policy.Settlement, nowMicros int64) (policy.Settled, error) {
	settled, err := y.Store.Settle(ctx, settlement, nowMicros)
	if settled.Status == policy.SettleConflict {
		settled.Status = policy.SettleReplayed
	}
	return settled, err
}

// stingy keeps one token of what is given back whole.
type stingy struct{ Store }

func (s stingy) Settle(ctx context.Context, settlement policy.Settlement, nowMicros int64) (policy.Settled, error) {
	if settlement.ActualCost == 0 {
		settlement.ActualCost = 1
	}
	settled, err := s.Store.Settle(ctx, settlement, nowMicros)
	for i := range settled.Parts {
		if settled.Parts[i].Actual == 1 && settled.Parts[i].Charged != 1 {
			settled.Parts[i].Actual = 0
		}
	}
	return settled, err
}

// lenient renews a slot at the very instant at which it has expired.
type lenient struct{ Store }

func (l lenient) RenewSlot(ctx context.Context, id policy.SlotID, nowMicros int64) (int64, bool, error) {
	expires, renewed, err := l.Store.RenewSlot(ctx, id, nowMicros)
	if err == nil && !renewed {
		expires, renewed, err = l.Store.RenewSlot(ctx, id, nowMicros-1)
	}
	return expires, renewed, err
}

// agreeable says of every release that it ended a live slot.
type agreeable struct{ Store }

func (a agreeable) ReleaseSlot(ctx context.Context, id policy.SlotID, nowMicros int64) (bool, error) {
	_, err := a.Store.ReleaseSlot(ctx, id, nowMicros)
	return true, err
}
