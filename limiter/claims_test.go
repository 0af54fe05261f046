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
		groupsMax := rapid.IntRange(1, 100).Draw(t, "groupsMax")
		b := newClaims(&Config{BatchAsksMax: checksMax})
		var waiting, order []*call
		for range rapid.IntRange(0, 300).Draw(t, "calls") {
			c := waitingClaim(rapid.Byte().Draw(t, "operation")%8, rapid.IntRange(0, 5).Draw(t, "checks"), rapid.IntRange(0, 2).Draw(t, "logs"),
				rapid.Int64Range(1, 2).Draw(t, "generation"))
			c.claim.Content = policy.Key{rapid.Byte().Draw(t, "content") % 2}
			if rapid.IntRange(0, 9).Draw(t, "leaves") == 0 {
				c.state.Store(dropped)
			}
			waiting, order = append(waiting, c), append(order, c)
		}
		batches := make(map[*call]int) // that each call went with, from 1
		for batch := 1; len(waiting) > 0; batch++ {
			before := len(waiting)
			groups, rest := b.take(waiting, groupsMax)
			checkClaims(t, groups, checksMax, min(claimsMax, groupsMax))
			for _, g := range groups {
				for c := g.first; c != nil; c = c.next {
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
		type line struct { // where nobody overtakes
			operation, content policy.Key
			lookUp             bool
			generation         int64
		}
		last := map[line]int{}
		for _, c := range order {
			if left := c.state.Load() == dropped; left != (batches[c] == 0) {
				t.Fatalf("left is %t, sent with batch %d", left, batches[c])
			} else if left {
				continue
			}
			in := line{c.claim.Operation, c.claim.Content, len(c.claim.Checks) == 0, c.generation}
			if !c.claim.hasOperation() {
				in = line{generation: c.generation}
			}
			if batches[c] < last[in] {
				t.Fatal("a later call of the same request, or of those without an operation id, went first")
			}
			last[in] = batches[c]
		}
	})
}

// checkClaims checks what the store is promised of one call.
func checkClaims(t *rapid.T, groups []group, checksMax, groupsMax int) {
	if len(groups) > groupsMax {
		t.Fatalf("%d claims, at most %d", len(groups), groupsMax)
	}
	checks, logs, operations := 0, 0, map[policy.Key]bool{}
	for _, g := range groups {
		checks += len(g.claim.Checks)
		logs += policy.CountLogs(g.claim.Checks)
		callers := 0
		for c := g.first; c != nil; c = c.next {
			callers++
			switch {
			case c.state.Load() != sent:
				t.Fatal("a call is in a batch but not sent")
			case c.generation != groups[0].first.generation:
				t.Fatal("two generations in a batch")
			case c != g.first && (!c.claim.hasOperation() || !c.claim.repeats(g.claim)):
				t.Fatal("a call goes with a claim that is another request")
			case c.next == nil && c != g.last:
				t.Fatal("the last call is not the group's last")
			}
		}
		switch {
		case g.claim != g.first.claim || g.callers != callers:
			t.Fatal("a claim is not its first caller's, or its callers are not counted")
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
