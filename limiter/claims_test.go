package limiter

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/rationhq/ration/policy"
)

// waitingClaim makes a call as it waits in a general lane; operation 0 is none.
func waitingClaim(operation byte, checks, logs int, generation int64) *call {
	c := &call{generation: generation, claim: &claim{}}
	c.claim.Operation = policy.Key{operation}
	for key := range checks + logs {
		spec := &policy.Spec{}
		if key >= checks {
			spec.Limit.Algorithm = policy.SlidingWindowLog
		}
		c.claim.Checks = append(c.claim.Checks, policy.Check{Policy: &policy.Installed{Spec: spec}, Key: policy.Key{byte(key)}, Cost: 1})
	}
	c.state.Store(queued)
	return c
}

// Whatever waits, taking batch after batch sends everybody once, and each batch
// is what the store may be given.
func TestEveryCallOfClaimsIsFitForTheStore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		checksMax := rapid.IntRange(1, 200).Draw(t, "checksMax")
		b := newClaims(&Config{BatchAsksMax: checksMax})
		var waiting, order []*call
		for range rapid.IntRange(0, 300).Draw(t, "calls") {
			c := waitingClaim(rapid.Byte().Draw(t, "operation")%8, rapid.IntRange(0, 5).Draw(t, "checks"), rapid.IntRange(0, 2).Draw(t, "logs"),
				rapid.Int64Range(1, 2).Draw(t, "generation"))
			if rapid.IntRange(0, 9).Draw(t, "leaves") == 0 {
				c.state.Store(dropped)
			}
			waiting, order = append(waiting, c), append(order, c)
		}
		batches := make(map[*call]int) // that each call went with, from 1
		for batch := 1; len(waiting) > 0; batch++ {
			before := len(waiting)
			groups, rest := b.take(waiting)
			checkClaims(t, groups, checksMax)
			for _, g := range groups {
				if batches[g.first] != 0 {
					t.Fatal("a call was sent twice")
				}
				batches[g.first] = batch
			}
			if len(rest) == before {
				t.Fatal("a batch took nothing")
			}
			waiting = rest
		}
		last := map[policy.Key]map[int64]int{}
		for _, c := range order {
			if left := c.state.Load() == dropped; left != (batches[c] == 0) {
				t.Fatalf("left is %t, sent with batch %d", left, batches[c])
			} else if left {
				continue
			}
			of := last[c.claim.Operation]
			if of == nil {
				of = map[int64]int{}
				last[c.claim.Operation] = of
			}
			if batches[c] < of[c.generation] {
				t.Fatal("a later call of the operation, or of those without, went first")
			}
			of[c.generation] = batches[c]
		}
	})
}

// checkClaims checks what the store is promised of one call.
func checkClaims(t *rapid.T, groups []group, checksMax int) {
	if len(groups) > claimsMax {
		t.Fatalf("%d claims, at most %d", len(groups), claimsMax)
	}
	checks, logs, operations := 0, 0, map[policy.Key]bool{}
	for _, g := range groups {
		checks += len(g.claim.Checks)
		logs += g.claim.logs()
		switch c := g.first; {
		case c.state.Load() != sent:
			t.Fatal("a call is in a batch but not sent")
		case c != g.last || c.next != nil || g.callers != 1 || c.claim != g.claim:
			t.Fatal("a claim is not its one caller's")
		case c.generation != groups[0].first.generation:
			t.Fatal("two generations in a batch")
		case operations[g.claim.Operation]:
			t.Fatal("an operation is twice in a call")
		}
		if g.claim.hasOperation() {
			operations[g.claim.Operation] = true
		}
	}
	if len(groups) > 1 && (checks > checksMax || logs > logsMax) {
		t.Fatalf("%d checks, %d logs, at most %d and %d", checks, logs, checksMax, logsMax)
	}
}

// deciding is a session that allows every claim, after what a test wants to
// happen during the call.
type deciding struct {
	answering

	becomes func() policy.ClaimStatus
}

func (d deciding) Decide(_ context.Context, _ policy.Hold, claims *policy.Claims, verdicts *policy.Verdicts) error {
	d.meanwhile()
	verdicts.Verdicts = verdicts.Verdicts[:0]
	for range claims.Claims {
		verdicts.Verdicts = append(verdicts.Verdicts, policy.Verdict{Status: d.becomes(), Allowed: true, Parts: make([]policy.Part, 1)})
	}
	return nil
}

// What has been decided can be forgotten: no buffer of a general lane holds it.
func TestGeneralBuffersKeepNoCallAlive(t *testing.T) {
	t.Parallel()
	metrics, err := NewMetrics(prometheus.NewPedanticRegistry())
	if err != nil {
		t.Fatal(err)
	}
	b := newClaims(&Config{BatchAsksMax: 5})
	l := &lane{
		queue: queue{max: 1000, wake: make(chan struct{}, 1)}, kind: durableClaims, batcher: b,
		metrics: metrics, waitMax: time.Minute,
	}
	var all []*call
	arrive := func() {
		for operation := range byte(6) {
			c := waitingClaim(operation/2+1, 2, 0, 1)
			c.waiter = newWaiter()
			c.waiter.open.Store(1)
			all = append(all, c)
			if l.push(c) != 1 {
				t.Fatal("no room")
			}
		}
	}
	batches, verdicts := 0, 0
	l.session = deciding{
		answering: answering{meanwhile: func() {
			if batches++; batches < 5 {
				arrive()
			} else {
				l.close()
			}
		}},
		becomes: func() policy.ClaimStatus {
			verdicts++
			return []policy.ClaimStatus{policy.ClaimDecided, policy.ClaimInProgress, policy.ClaimAgain, policy.ClaimUnknown}[verdicts%4]
		},
	}
	arrive()
	l.run(t.Context())
	for _, c := range all {
		if c.state.Load() != done || c.next != nil {
			t.Error("a call is not done, or holds another")
		}
	}
	for _, buffer := range [][]*call{l.arrivals, l.backlog, l.parking.calls} {
		for _, c := range buffer[:cap(buffer)] {
			if c != nil {
				t.Error("a queue's buffer holds a call")
			}
		}
	}
	for _, buffer := range [][]group{b.groups, l.apart} {
		for _, g := range buffer[:cap(buffer)] {
			if g.first != nil || g.claim != nil {
				t.Error("a batch's buffer holds a call")
			}
		}
	}
	for _, claim := range b.batch.Claims[:cap(b.batch.Claims)] {
		if claim.Checks != nil {
			t.Error("the call of the store holds a claim")
		}
	}
	if l.waiting != 0 || len(b.operations) != 0 {
		t.Errorf("%d count as waiting, %d operations as being decided", l.waiting, len(b.operations))
	}
}
