package limiter

import (
	"bytes"
	"slices"

	"github.com/rationhq/ration/policy"
)

// group is one element of a batch with its callers, in order of arrival: one
// ask with all of them; or one claim, with those who repeat it under its
// operation id.
type group struct {
	ask         policy.Ask
	claim       *claim // the first caller's; nil for an ask, which says it all
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
	if g.claim == nil && !c.peek {
		g.ask.Count++
	}
}

// accepts says whether a caller may join: the same cost, and a peek only
// peeks.
func (g *group) accepts(c *call) bool {
	return !g.closed && g.ask.Cost == c.check.Cost && g.first.peek == c.peek
}

// charges says whether the group takes anything, and so locks rows.
func (g *group) charges() bool {
	if g.claim != nil {
		return !g.claim.Peek && len(g.claim.Checks) > 0
	}
	return g.ask.Count > 0
}

// mayRepeat says whether the outcome may be known already, under an operation
// id.
func (g *group) mayRepeat() bool { return g.claim != nil && g.claim.hasOperation() }

// keys gives the keys of the group. It and name may be called when the callers
// have gone.
func (g *group) keys(yield func(policy.Key) bool) {
	if g.claim == nil {
		yield(g.ask.Key)
		return
	}
	for i := range g.claim.Checks {
		if !yield(g.claim.Checks[i].Key) {
			return
		}
	}
}

// keyCount is how many keys the group has.
func (g *group) keyCount() int {
	if g.claim != nil {
		return len(g.claim.Checks)
	}
	return 1
}

// name stands for the keys of the group taken together; one key is its own.
func (g *group) name() (name policy.Key) {
	for key := range g.keys {
		for i := range name {
			name[i] ^= key[i]
		}
	}
	return name
}

// gathering makes groups of calls that each ask one token bucket. Its buffers
// are used again and again; none of them keeps a call alive.
type gathering struct {
	asksMax   int
	groupsMax int // of the batch in hand
	groups    []group
	byKey     map[policy.Key]int
}

func newGathering(asksMax int) *gathering {
	return &gathering{asksMax: asksMax, groups: make([]group, 0, asksMax), byKey: make(map[policy.Key]int, asksMax)}
}

// take makes the groups of one batch, ascending by key; see [batcher].
func (g *gathering) take(waiting []*call, groupsMax int) (groups []group, rest []*call) {
	g.release()
	clear(g.byKey)
	g.groupsMax = min(g.asksMax, groupsMax)
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
	case !known && len(g.groups) == g.groupsMax:
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
