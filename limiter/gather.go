package limiter

import (
	"bytes"
	"slices"

	"github.com/rationhq/ration/policy"
)

// group is one ask of a batch with all its callers, in order of arrival.
type group struct {
	ask         policy.Ask
	first, last *call
	callers     int
	closed      bool // a caller of another cost waits for this key: later ones line up behind him
}

// add appends a caller.
func (g *group) add(c *call) {
	c.next = nil
	if g.first == nil {
		g.first = c
	} else {
		g.last.next = c
	}
	g.last = c
	g.callers++
	if !c.peek {
		g.ask.Count++
	}
}

// accepts says whether a caller may join: the same cost, and a peek only
// peeks.
func (g *group) accepts(c *call) bool {
	return !g.closed && g.ask.Cost == c.check.Cost && g.first.peek == c.peek
}

// gathering makes batches of waiting calls. Its buffers are used again and
// again; none of them keeps a call alive.
type gathering struct {
	asksMax int
	groups  []group
	byKey   map[policy.Key]int
}

func newGathering(asksMax int) *gathering {
	return &gathering{asksMax: asksMax, groups: make([]group, 0, asksMax), byKey: make(map[policy.Key]int, asksMax)}
}

// take makes the groups of one batch from the waiting calls, ascending by key,
// and gives the calls that have to wait on, in order. All calls of a batch are
// of one generation, that of the first; others wait. Calls whose callers left
// are gone. The groups are valid until the next take; release lets
// go of them before.
func (g *gathering) take(waiting []*call) (groups []group, rest []*call) {
	g.release()
	clear(g.byKey)
	rest = waiting[:0]
	var generation int64
	for _, c := range waiting {
		if len(g.groups) == 0 {
			generation = c.generation
		}
		if !g.place(c, generation) {
			rest = append(rest, c)
		}
	}
	clear(waiting[len(rest):])
	slices.SortFunc(g.groups, func(a, b group) int { return bytes.Compare(a.ask.Key[:], b.ask.Key[:]) })
	return g.groups, rest
}

// release lets go of the calls of the last batch.
func (g *gathering) release() {
	clear(g.groups)
	g.groups = g.groups[:0]
}

// place puts a call into its group, or drops it; false leaves it waiting.
func (g *gathering) place(c *call, generation int64) bool {
	place, known := g.byKey[c.check.Key]
	switch {
	case c.state.Load() != queued:
		return true
	case c.generation != generation:
		return false
	case known && !g.groups[place].accepts(c):
		g.groups[place].closed = true
		return false
	case !known && len(g.groups) == g.asksMax:
		return false
	case !c.state.CompareAndSwap(queued, sent):
		return true
	case !known:
		place = len(g.groups)
		g.byKey[c.check.Key] = place
		g.groups = append(g.groups, group{ask: policy.Ask{
			Key: c.check.Key, Policy: c.check.Policy.Number, Cost: c.check.Cost,
		}})
	}
	g.groups[place].add(c)
	return true
}
