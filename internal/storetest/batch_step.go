package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/rationhq/ration/policy"
)

// ask is one element of a call.
type ask struct {
	slot, key int
	count     int32
	cost      int64
}

func (a ask) String() string {
	return fmt.Sprintf("policy %d key %d: %d × cost %d", a.slot, a.key, a.count, a.cost)
}

// decide is one call, on the right generation or on a stale one.
type decide struct {
	durability policy.Durability // of all the asks
	asks       []ask
	stale      bool
}

func (d decide) String() string {
	asks := make([]string, len(d.asks))
	for i, a := range d.asks {
		asks[i] = a.String()
	}
	name := "decide " + d.durability.String() + " "
	if d.stale {
		name += "on a stale generation "
	}
	return name + strings.Join(asks, ", ")
}

func (d decide) play(g *game) *difference {
	// By ascending key, as a batch must be. Policies that a cut-down history
	// no longer installs, or not as what they were, are left out.
	asks := slices.DeleteFunc(slices.Clone(d.asks), func(a ask) bool { return !g.isBucket(a.slot, d.durability) })
	if len(asks) == 0 {
		return nil
	}
	slices.SortFunc(asks, func(a, b ask) int {
		x, y := g.key(a.slot, a.key), g.key(b.slot, b.key)
		return bytes.Compare(x[:], y[:])
	})
	want, wantErr := d.ask(g, asks, g.model, modelOf, g.generations.model)
	got, gotErr := d.ask(g, asks, g.subject, subjectOf, g.generations.subject)
	switch {
	case wantErr != nil || gotErr != nil:
		return g.differ("the model says %v, the subject %v", wantErr, gotErr)
	case want.Stale != d.stale || got.Stale != d.stale:
		return g.differ("want stale %t, the model says %t, the subject %t", d.stale, want.Stale, got.Stale)
	case d.stale:
		return nil
	case len(got.Asks) != len(asks):
		return g.differ("%d answers to %d asks", len(got.Asks), len(asks))
	}
	for i := range asks {
		if got.Asks[i] != want.Asks[i] {
			return g.differ("%s\n   model %+v\n subject %+v", asks[i], want.Asks[i], got.Asks[i])
		}
		g.advise(want.Asks[i].RetryAfterMicros)
	}
	g.answers += len(asks)
	return nil
}

// ask makes the call of one store, by its own numbers of the policies.
func (d decide) ask(
	g *game, asks []ask, store Store, of func(pair[*policy.Installed]) *policy.Installed, generation int64,
) (policy.Answers, error) {
	batch := policy.Batch{
		Durability: d.durability, Generation: generation, NowMicros: g.nowMicros,
		Asks: make([]policy.Ask, len(asks)),
	}
	if d.stale {
		batch.Generation--
	}
	for i, a := range asks {
		batch.Asks[i] = policy.Ask{
			Key: g.key(a.slot, a.key), Policy: of(g.policies[a.slot]).Number, Count: a.count, Cost: a.cost,
		}
	}
	var answers policy.Answers
	err := store.Decide(g.context, &batch, &answers)
	return answers, err
}

// simpler leaves out one ask, or all but one caller of it.
func (d decide) simpler() []step {
	var variants []step
	for i, a := range d.asks {
		if len(d.asks) > 1 {
			fewer := slices.Delete(slices.Clone(d.asks), i, i+1)
			variants = append(variants, decide{durability: d.durability, asks: fewer, stale: d.stale})
		}
		if a.count > 1 {
			fewer := slices.Clone(d.asks)
			fewer[i].count = 1
			variants = append(variants, decide{durability: d.durability, asks: fewer, stale: d.stale})
		}
	}
	return variants
}
