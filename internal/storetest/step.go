package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rationhq/ration/policy"
)

// moveClock moves the clock, as far as it stays within the history's bounds.
type moveClock struct{ byMicros int64 }

func (m moveClock) String() string {
	return fmt.Sprintf("clock %+d µs (%s)", m.byMicros, time.Duration(m.byMicros)*time.Microsecond)
}

func (m moveClock) play(g *game) *difference {
	if to := g.nowMicros + m.byMicros; earliestMicros <= to && to <= latestMicros {
		g.nowMicros = to
	}
	return nil
}

func (m moveClock) simpler() []step { return nil }

// followAdvice moves the clock to the instant that the last denial advised,
// or to a microsecond beside it.
type followAdvice struct{ offMicros int64 }

func (f followAdvice) String() string {
	return fmt.Sprintf("clock to the advised instant %+d µs", f.offMicros)
}

func (f followAdvice) play(g *game) *difference {
	if to := g.advisedMicros + f.offMicros; g.nowMicros < to && to <= latestMicros {
		g.nowMicros = to
	}
	return nil
}

func (f followAdvice) simpler() []step { return nil }

// install makes the next version of a slot's policy, or tries to with a
// version that is not the current one.
type install struct {
	slot         int
	shape        shape
	wrongVersion bool
}

func (i install) String() string {
	if i.wrongVersion {
		return fmt.Sprintf("install policy %d with a wrong version", i.slot)
	}
	return fmt.Sprintf("install policy %d: %s", i.slot, i.shape)
}

func (i install) play(g *game) *difference {
	change, err := i.shape.change(durabilityOf(i.slot))
	if err != nil {
		return g.differ("the policy package refuses %s: %v", i.shape, err)
	}
	expected := g.versions[i.slot]
	if i.wrongVersion {
		expected++
	}
	id := g.policyID(i.slot)
	want, wantErr := g.model.Install(g.context, id, change, expected, g.nowMicros)
	got, gotErr := g.subject.Install(g.context, id, change, expected, g.nowMicros)
	if i.wrongVersion {
		if !isConflict(wantErr) || !isConflict(gotErr) {
			return g.differ("want version conflicts, the model says %v, the subject %v", wantErr, gotErr)
		}
		return nil
	}
	if wantErr != nil || gotErr != nil {
		return g.differ("the model says %v, the subject %v", wantErr, gotErr)
	}
	if got.Version != want.Version || got.InstalledAtMicros != want.InstalledAtMicros {
		return g.differ("version %d at %d, want version %d at %d",
			got.Version, got.InstalledAtMicros, want.Version, want.InstalledAtMicros)
	}
	g.versions[i.slot] = want.Version
	g.numbers[i.slot] = pair[int32]{model: want.Number, subject: got.Number}
	return g.reload()
}

func (i install) simpler() []step { return nil }

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
	asks  []ask // all of one durability
	stale bool
}

func (d decide) String() string {
	asks := make([]string, len(d.asks))
	for i, a := range d.asks {
		asks[i] = a.String()
	}
	name := "decide "
	if d.stale {
		name = "decide on a stale generation "
	}
	return name + strings.Join(asks, ", ")
}

func (d decide) play(g *game) *difference {
	// By ascending key, as a batch must be. Policies that a cut-down history
	// no longer installs are left out.
	asks := slices.DeleteFunc(slices.Clone(d.asks), func(a ask) bool { return g.versions[a.slot] == 0 })
	if len(asks) == 0 {
		return nil
	}
	slices.SortFunc(asks, func(a, b ask) int {
		x, y := g.key(a), g.key(b)
		return bytes.Compare(x[:], y[:])
	})
	want, wantErr := g.call(g.model, g.batch(asks, d.stale, func(p pair[int32]) int32 { return p.model }, g.generations.model))
	got, gotErr := g.call(g.subject, g.batch(asks, d.stale, func(p pair[int32]) int32 { return p.subject }, g.generations.subject))
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
		if wait := want.Asks[i].RetryAfterMicros; wait > 0 && wait <= latestMicros-g.nowMicros {
			g.advisedMicros = g.nowMicros + wait
		}
	}
	g.answers += len(asks)
	return nil
}

// simpler leaves out one ask, or all but one caller of it.
func (d decide) simpler() []step {
	var variants []step
	for i, a := range d.asks {
		if len(d.asks) > 1 {
			variants = append(variants, decide{asks: slices.Delete(slices.Clone(d.asks), i, i+1), stale: d.stale})
		}
		if a.count > 1 {
			fewer := slices.Clone(d.asks)
			fewer[i].count = 1
			variants = append(variants, decide{asks: fewer, stale: d.stale})
		}
	}
	return variants
}

// clean lets both stores delete what they may. How many those are is theirs:
// a store may keep rows for absent keys that another does not.
type clean struct{}

func (clean) String() string { return "clean" }

func (clean) play(g *game) *difference {
	_, wantErr := g.model.Clean(g.context, g.nowMicros)
	_, gotErr := g.subject.Clean(g.context, g.nowMicros)
	if wantErr != nil || gotErr != nil {
		return g.differ("the model says %v, the subject %v", wantErr, gotErr)
	}
	return nil
}

func (clean) simpler() []step { return nil }

// durabilityOf says which durability a slot's policy has.
func durabilityOf(slot int) policy.Durability {
	if slot%2 == 1 {
		return policy.Durable
	}
	return policy.Fast
}
