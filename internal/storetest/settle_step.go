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
