package limiter

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/rationhq/ration/policy"
)

// waitingCall makes a call as it waits in a lane.
func waitingCall(key byte, cost int64, peek bool, generation int64) *call {
	c := &call{peek: peek, generation: generation}
	c.check = policy.Check{Policy: &policy.Installed{Number: int32(key)}, Key: policy.Key{key}, Cost: cost}
	c.state.Store(queued)
	return c
}

// Whatever waits, taking batch after batch answers everybody once, and each
// batch is what the store may be given.
func TestEveryBatchIsFitForTheStore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		asksMax := rapid.IntRange(1, 5).Draw(t, "asksMax")
		groupsMax := rapid.IntRange(1, 7).Draw(t, "groupsMax")
		g := newGathering(asksMax)
		var waiting []*call
		var order []*call // of arrival
		for range rapid.IntRange(0, 40).Draw(t, "calls") {
			c := waitingCall(rapid.Byte().Draw(t, "key")%8, rapid.Int64Range(1, 3).Draw(t, "cost"),
				rapid.Bool().Draw(t, "peek"), rapid.Int64Range(1, 2).Draw(t, "generation"))
			if rapid.IntRange(0, 9).Draw(t, "leaves") == 0 {
				c.state.Store(dropped)
			}
			waiting = append(waiting, c)
			order = append(order, c)
		}
		batches := make(map[*call]int) // that each call went with, from 1
		for batch := 1; len(waiting) > 0; batch++ {
			before := len(waiting)
			groups, rest := g.take(waiting, groupsMax)
			checkBatch(t, groups, min(asksMax, groupsMax))
			for _, group := range groups {
				for c := group.first; c != nil; c = c.next {
					if batches[c] != 0 {
						t.Fatal("a call was sent twice")
					}
					batches[c] = batch
				}
			}
			if len(rest) == before {
				t.Fatal("a batch took nothing")
			}
			waiting = rest
		}
		checkOrder(t, order, batches)
	})
}

// checkBatch checks what the store is promised of one batch.
func checkBatch(t *rapid.T, groups []group, asksMax int) {
	if len(groups) > asksMax {
		t.Fatalf("%d asks, at most %d", len(groups), asksMax)
	}
	for i, group := range groups {
		if i > 0 && bytes.Compare(groups[i-1].ask.Key[:], group.ask.Key[:]) >= 0 {
			t.Fatal("keys are not ascending and distinct")
		}
		callers, charges := 0, int32(0)
		for c := group.first; c != nil; c = c.next {
			callers++
			if !c.peek {
				charges++
			}
			if c.state.Load() != sent {
				t.Fatal("a call is in a batch but not sent")
			}
			if c.check.Key != group.ask.Key || c.check.Cost != group.ask.Cost || c.check.Policy.Number != group.ask.Policy {
				t.Fatalf("%+v is in the group of %+v", c.check, group.ask)
			}
			if c.peek != group.first.peek || c.generation != groups[0].first.generation {
				t.Fatal("a peek is among charges, or two generations in a batch")
			}
		}
		if charges != group.ask.Count || callers != group.callers {
			t.Fatalf("%d callers and %d charges are counted as %d and %d", callers, charges, group.callers, group.ask.Count)
		}
	}
}

// checkOrder checks that nobody is forgotten or sent after he left, and that
// the callers of one key and one generation go in the order of their arrival.
func checkOrder(t *rapid.T, order []*call, batches map[*call]int) {
	type line struct {
		key        policy.Key
		generation int64
	}
	last := map[line]int{}
	for _, c := range order {
		if left := c.state.Load() == dropped; left != (batches[c] == 0) {
			t.Fatalf("left is %t, sent with batch %d", left, batches[c])
		} else if left {
			continue
		}
		at := line{c.check.Key, c.generation}
		if batches[c] < last[at] {
			t.Fatal("a later caller of the key went first")
		}
		last[at] = batches[c]
	}
}

func TestCallersOfAGroupAreInOrderOfArrival(t *testing.T) {
	t.Parallel()
	waiting := []*call{waitingCall(1, 2, false, 1), waitingCall(1, 2, false, 1), waitingCall(1, 2, false, 1)}
	want := append([]*call(nil), waiting...)
	groups, _ := newGathering(4).take(waiting, BatchAsksBound)
	c := groups[0].first
	for i := range want {
		if c != want[i] {
			t.Fatalf("caller %d is another", i)
		}
		c = c.next
	}
}

// answering is a session that admits everybody, after what a test wants to
// happen during the call.
type answering struct{ meanwhile func() }

func (a answering) Take(_ context.Context, batch *policy.Batch, answers *policy.Answers) error {
	a.meanwhile()
	answers.Asks = answers.Asks[:0]
	for i := range batch.Asks {
		answers.Asks = append(answers.Asks, policy.Answer{Admitted: batch.Asks[i].Count})
	}
	return nil
}

func (a answering) TakeNew(ctx context.Context, _ policy.Hold, batch *policy.Batch, answers *policy.Answers) error {
	return a.Take(ctx, batch, answers)
}

func (answering) Decide(context.Context, policy.Hold, *policy.Claims, *policy.Verdicts) error {
	return nil
}

func (answering) Connect(context.Context) error         { return nil }
func (answering) Recover(context.Context) (bool, error) { return false, nil }
func (answering) Close()                                {}

// What has been decided can be forgotten: no buffer of the lane holds it.
func TestBuffersKeepNoCallAlive(t *testing.T) {
	t.Parallel()
	metrics, err := NewMetrics(prometheus.NewPedanticRegistry())
	if err != nil {
		t.Fatal(err)
	}
	gathering := newGathering(2)
	l := &lane{
		queue: queue{max: 100, wake: make(chan struct{}, 1)}, batcher: &asks{gathering: gathering},
		metrics: metrics, waitMax: time.Minute,
	}
	var all []*call
	arrive := func() {
		for key := range byte(6) {
			c := waitingCall(key/2, 1, false, 1)
			c.waiter = newWaiter()
			c.waiter.open.Store(1)
			all = append(all, c)
			if l.push(c) != 1 {
				t.Fatal("no room")
			}
		}
	}
	batches := 0
	l.session = answering{meanwhile: func() {
		if batches++; batches < 5 {
			arrive()
		} else {
			l.close()
		}
	}}
	arrive()
	l.run(t.Context())
	for _, c := range all {
		if c.state.Load() != done || c.next != nil {
			t.Error("a call is not done, or holds another")
		}
	}
	for _, buffer := range [][]*call{l.arrivals, l.backlog} {
		for _, c := range buffer[:cap(buffer)] {
			if c != nil {
				t.Error("a queue's buffer holds a call")
			}
		}
	}
	for _, g := range gathering.groups[:cap(gathering.groups)] {
		if g.first != nil || g.last != nil {
			t.Error("a batch's buffer holds a call")
		}
	}
	if l.waiting != 0 {
		t.Errorf("%d count as waiting", l.waiting)
	}
}

func TestAQueueTakesWhatThereIsRoomFor(t *testing.T) {
	t.Parallel()
	l := &queue{max: 3, wake: make(chan struct{}, 1)}
	var calls []*call
	for key := range byte(5) {
		calls = append(calls, waitingCall(key, 1, false, 1))
	}
	if room := l.push(calls...); room != 3 {
		t.Errorf("room for %d, want 3", room)
	}
	if room := l.push(calls[3]); room != 0 {
		t.Errorf("room for %d in a full queue", room)
	}
	l.collect()
	if room := l.push(calls[3]); room != 0 {
		t.Errorf("room for %d while the backlog fills the queue", room)
	}
	l.close()
	l.taken(3)
	if room := l.push(calls[3]); room != 0 {
		t.Errorf("room for %d in a closed lane", room)
	}
}

// Who has been in the queue before goes in front, and finds room in a full one.
func TestWhoComesBackKeepsHisPlace(t *testing.T) {
	t.Parallel()
	l := &queue{max: 2, wake: make(chan struct{}, 1)}
	var calls []*call
	for key := range byte(6) {
		calls = append(calls, waitingCall(key, 1, false, 1))
	}
	l.push(calls[2])
	l.collect()
	l.push(calls[3])
	if room := l.pushAgain(calls[:2]...); room != 2 {
		t.Errorf("room for %d that come back to a full queue, want 2", room)
	}
	l.collect()
	if !slices.Equal(l.backlog, calls[:4]) || l.waiting != 4 {
		t.Errorf("%d wait, of which %d count", len(l.backlog), l.waiting)
	}
	for _, c := range l.returns[:cap(l.returns)] {
		if c != nil {
			t.Error("the queue's buffer holds a call")
		}
	}
	l.close()
	if room := l.pushAgain(calls[4]); room != 0 {
		t.Errorf("room for %d that come back to a closed lane", room)
	}
}
