package storetest

import (
	"fmt"
	"time"
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
