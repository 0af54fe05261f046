package storetest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rationhq/ration/policy"
)

// pair is the same thing in both stores.
type pair[T any] struct{ model, subject T }

func modelOf[T any](p pair[T]) T   { return p.model }
func subjectOf[T any](p pair[T]) T { return p.subject }

// difference is where two stores parted.
type difference struct {
	history history // as it was played
	at      int     // index of the step
	detail  string
}

// String tells the history up to the difference.
func (d *difference) String() string {
	var b strings.Builder
	for i, s := range d.history.steps[:d.at+1] {
		fmt.Fprintf(&b, "%4d  %s\n", i+1, s)
	}
	fmt.Fprintf(&b, "there: %s", d.detail)
	return b.String()
}

// game plays histories to two stores and looks for a difference. Each history
// has policies of its own, so that one pair of stores serves for many.
type game struct {
	context        context.Context
	model, subject Store
	games          int // histories begun
	answers        int // asks and claims answered alike, over all histories

	// Of the history being played.
	history       history
	at            int
	nowMicros     int64
	advisedMicros int64 // the last advised instant
	generations   pair[int64]
	policies      [slotsMax]pair[*policy.Installed] // the newest versions; nil: never installed
	deleted       [slotsMax]bool
	handedOut     []handedOut // in the order of acquiring
}

// play plays a history from its beginning to the first difference, nil when
// there is none.
func (g *game) play(h history) *difference {
	*g = game{
		context: g.context, model: g.model, subject: g.subject,
		games: g.games + 1, answers: g.answers,
		history: h, nowMicros: epochMicros, advisedMicros: epochMicros,
	}
	if found := g.reload(); found != nil {
		return found
	}
	for i, s := range h.steps {
		g.at = i
		if found := s.play(g); found != nil {
			return found
		}
	}
	return nil
}

// differ is a difference at the step being played.
func (g *game) differ(format string, args ...any) *difference {
	return &difference{history: g.history, at: g.at, detail: fmt.Sprintf(format, args...)}
}

// handedOut is a slot that was acquired.
type handedOut struct {
	ids             pair[policy.SlotID]
	expiresAtMicros int64
}

// advise notes a wait that a denial advised.
func (g *game) advise(waitMicros int64) {
	if waitMicros > 0 && waitMicros <= latestMicros-g.nowMicros {
		g.advisedMicros = g.nowMicros + waitMicros
	}
}

// forwardTo moves the clock, never back.
func (g *game) forwardTo(instant int64) {
	if g.nowMicros < instant && instant <= latestMicros {
		g.nowMicros = instant
	}
}

// policyID names a slot's policy. No two games share one.
func (g *game) policyID(slot int) string {
	return fmt.Sprintf("history-%x-%d-%d", g.history.seed, g.games, slot)
}

// key is a key of a slot's policy.
func (g *game) key(slot, key int) policy.Key { return keyOf(g.policyID(slot), strconv.Itoa(key)) }

// installed says whether a slot has a policy in force, which a cut-down history
// may have left out.
func (g *game) installed(slot int) bool { return g.policies[slot].model != nil && !g.deleted[slot] }

// isBucket says whether it is a token bucket of a durability.
func (g *game) isBucket(slot int, durability policy.Durability) bool {
	if !g.installed(slot) {
		return false
	}
	spec := g.policies[slot].model.Spec
	return spec.Limit.Algorithm == policy.TokenBucket && spec.Durability == durability
}

// version is the version in force of a slot's policy, 0 when there is none.
func (g *game) version(slot int) int {
	if !g.installed(slot) {
		return 0
	}
	return g.policies[slot].model.Version
}

// slotOf finds the slot of a policy in one of the stores.
func (g *game) slotOf(number int32, of func(pair[*policy.Installed]) *policy.Installed) int {
	return slices.IndexFunc(g.policies[:], func(p pair[*policy.Installed]) bool {
		return of(p) != nil && of(p).Number == number
	})
}

// reload takes over both stores' generations.
func (g *game) reload() *difference {
	model, wantErr := g.model.Generation(g.context)
	subject, gotErr := g.subject.Generation(g.context)
	if wantErr != nil || gotErr != nil {
		return g.differ("the model says %v, the subject %v", wantErr, gotErr)
	}
	g.generations = pair[int64]{model: model, subject: subject}
	return nil
}
