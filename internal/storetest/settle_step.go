package storetest

import (
	"fmt"
	"slices"

	"github.com/rationhq/ration/policy"
)

// settle replaces what an operation was charged.
type settle struct {
	operation int // its number; there may be none
	actual    int64
}

func (s settle) String() string {
	return fmt.Sprintf("settle operation %d to %d", s.operation, s.actual)
}

func (s settle) play(g *game) *difference {
	settlement := policy.Settlement{Operation: g.operation(s.operation), ActualCost: s.actual}
	want, wantErr := g.model.Settle(g.context, settlement, g.nowMicros)
	got, gotErr := g.subject.Settle(g.context, settlement, g.nowMicros)
	if wantErr != nil || gotErr != nil {
		return g.differ("the model says %v, the subject %v", wantErr, gotErr)
	}
	if got.Status != want.Status || got.AtMicros != want.AtMicros || !slices.Equal(got.Parts, want.Parts) {
		return g.differ("\n   model %+v\n subject %+v", want, got)
	}
	return nil
}

func (s settle) simpler() []step { return nil }

// endOrRenew releases a slot that was handed out, or renews it.
type endOrRenew struct {
	renew bool
	back  int // how many were handed out since; a slot that never was, where there were not so many
}

func (e endOrRenew) String() string {
	name := "release"
	if e.renew {
		name = "renew"
	}
	return fmt.Sprintf("%s the slot handed out %d before the last", name, e.back)
}

func (e endOrRenew) play(g *game) *difference {
	ids := pair[policy.SlotID]{model: policy.SlotID{1}, subject: policy.SlotID{1}}
	if e.back < len(g.handedOut) {
		ids = g.handedOut[len(g.handedOut)-1-e.back]
	}
	var want, got struct {
		expires int64
		live    bool
	}
	var wantErr, gotErr error
	if e.renew {
		want.expires, want.live, wantErr = g.model.RenewSlot(g.context, ids.model, g.nowMicros)
		got.expires, got.live, gotErr = g.subject.RenewSlot(g.context, ids.subject, g.nowMicros)
	} else {
		want.live, wantErr = g.model.ReleaseSlot(g.context, ids.model, g.nowMicros)
		got.live, gotErr = g.subject.ReleaseSlot(g.context, ids.subject, g.nowMicros)
	}
	if wantErr != nil || gotErr != nil {
		return g.differ("the model says %v, the subject %v", wantErr, gotErr)
	}
	if got != want {
		return g.differ("the model says %+v, the subject %+v", want, got)
	}
	g.advise(want.expires - g.nowMicros)
	return nil
}

func (e endOrRenew) simpler() []step { return nil }
