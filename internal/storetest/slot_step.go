package storetest

import (
	"fmt"

	"github.com/rationhq/ration/policy"
)

// endOrRenew releases a slot that was handed out, or renews it: at once, or
// when the clock has come to its end or beside it.
type endOrRenew struct {
	renew     bool
	back      int // how many were handed out since; a slot that never was, where there were not so many
	atEnd     bool
	offMicros int64
}

func (e endOrRenew) String() string {
	name := "release"
	if e.renew {
		name = "renew"
	}
	name = fmt.Sprintf("%s the slot handed out %d before the last", name, e.back)
	if e.atEnd {
		name += fmt.Sprintf(", at its end %+d µs", e.offMicros)
	}
	return name
}

func (e endOrRenew) play(g *game) *difference {
	unknown := handedOut{ids: pair[policy.SlotID]{model: policy.SlotID{1}, subject: policy.SlotID{1}}}
	slot := &unknown
	if e.back < len(g.handedOut) {
		slot = &g.handedOut[len(g.handedOut)-1-e.back]
	}
	if e.atEnd {
		g.forwardTo(slot.expiresAtMicros + e.offMicros)
	}
	var want, got struct {
		expires int64
		live    bool
	}
	var wantErr, gotErr error
	if e.renew {
		want.expires, want.live, wantErr = g.model.RenewSlot(g.context, slot.ids.model, g.nowMicros)
		got.expires, got.live, gotErr = g.subject.RenewSlot(g.context, slot.ids.subject, g.nowMicros)
	} else {
		want.live, wantErr = g.model.ReleaseSlot(g.context, slot.ids.model, g.nowMicros)
		got.live, gotErr = g.subject.ReleaseSlot(g.context, slot.ids.subject, g.nowMicros)
	}
	if wantErr != nil || gotErr != nil {
		return g.differ("the model says %v, the subject %v", wantErr, gotErr)
	}
	if got != want {
		return g.differ("the model says %+v, the subject %+v", want, got)
	}
	if want.expires > 0 {
		slot.expiresAtMicros = want.expires
	}
	return nil
}

func (e endOrRenew) simpler() []step { return nil }
