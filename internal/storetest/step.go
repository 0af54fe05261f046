package storetest

import (
	"fmt"
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
	g.forwardTo(g.advisedMicros + f.offMicros)
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
	change, err := i.shape.change()
	if err != nil {
		return g.differ("the policy package refuses %s: %v", i.shape, err)
	}
	expected := 0
	if g.installed(i.slot) {
		expected = g.policies[i.slot].model.Version
	}
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
	g.policies[i.slot] = pair[*policy.Installed]{model: want, subject: got}
	return g.reload()
}

func (i install) simpler() []step { return nil }

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

// lose is a crash of both stores.
type lose struct{}

func (lose) String() string { return "lose the fast state" }

func (lose) play(g *game) *difference {
	wantErr, gotErr := g.model.Lose(g.context, g.nowMicros), g.subject.Lose(g.context, g.nowMicros)
	if wantErr != nil || gotErr != nil {
		return g.differ("the model says %v, the subject %v", wantErr, gotErr)
	}
	return nil
}

func (lose) simpler() []step { return nil }
