package storetest

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rationhq/ration/policy"
)

// pair is the same thing in both stores.
type pair[T any] struct{ model, subject T }

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
	answers        int // asks answered alike, over all histories

	// Of the history being played.
	history       history
	at            int
	nowMicros     int64
	advisedMicros int64 // the last advised instant
	generations   pair[int64]
	versions      [slotsMax]int // 0: not installed
	numbers       [slotsMax]pair[int32]
}

// play plays a history from its beginning to the first difference, nil when
// there is none.
func (g *game) play(h history) *difference {
	*g = game{
		context: g.context, model: g.model, subject: g.subject,
		games: g.games + 1, answers: g.answers,
		history: h, nowMicros: epochMicros, advisedMicros: epochMicros,
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

// policyID names a slot's policy. No two games share one.
func (g *game) policyID(slot int) string {
	return fmt.Sprintf("history-%x-%d-%d", g.history.seed, g.games, slot)
}

// key is the bucket of an ask.
func (g *game) key(a ask) policy.Key { return keyOf(g.policyID(a.slot), strconv.Itoa(a.key)) }

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

// batch is the call of one of the stores, by its own policy numbers.
func (g *game) batch(asks []ask, stale bool, of func(pair[int32]) int32, generation int64) *policy.Batch {
	if stale {
		generation--
	}
	batch := &policy.Batch{
		Durability: durabilityOf(asks[0].slot), Generation: generation, NowMicros: g.nowMicros,
		Asks: make([]policy.Ask, len(asks)),
	}
	for i, a := range asks {
		batch.Asks[i] = policy.Ask{Key: g.key(a), Policy: of(g.numbers[a.slot]), Count: a.count, Cost: a.cost}
	}
	return batch
}

// call makes a call of one store.
func (g *game) call(store Store, batch *policy.Batch) (policy.Answers, error) {
	var answers policy.Answers
	err := store.Decide(g.context, batch, &answers)
	return answers, err
}
