package memstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/rationhq/ration/internal/memstore"
	"github.com/rationhq/ration/internal/storetest"
	"github.com/rationhq/ration/policy"
)

const (
	second = int64(1_000_000)
	plenty = 1 << 20 // buckets; no test here makes as many
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(testing.TB) storetest.Store { return memstore.New(plenty) })
}

func TestReplayWebAccess(t *testing.T) {
	t.Parallel()
	storetest.ReplayWebAccess(t, memstore.New(plenty))
}

func TestReplayLogins(t *testing.T) {
	t.Parallel()
	storetest.ReplayLogins(t, memstore.New(plenty))
}

// Two stores of the same kind agree, which says nothing of the arithmetic and
// all of the comparison: it raises no false alarm.
func TestCompareWithItself(t *testing.T) {
	t.Parallel()
	storetest.Compare(t, 0, 0, memstore.New(plenty), memstore.New(plenty))
}

// place is a store with one policy of a key each, and a way to ask it.
type place struct {
	testing.TB

	store  *memstore.Store
	policy *policy.Installed
}

func newPlace(tb testing.TB, bucketsMax int, spec policy.Spec) *place {
	tb.Helper()
	p := &place{TB: tb, store: memstore.New(bucketsMax)}
	p.policy = p.install(0, 0, spec)
	return p
}

func (p *place) install(nowMicros int64, expected int, spec policy.Spec) *policy.Installed {
	p.Helper()
	installed, err := p.store.Install(p.Context(), "place", &policy.Change{Spec: &spec}, expected, nowMicros)
	if err != nil {
		p.Fatal(err)
	}
	return installed
}

func (p *place) lose(nowMicros int64) {
	p.Helper()
	if err := p.store.Lose(p.Context(), nowMicros); err != nil {
		p.Fatal(err)
	}
}

func (p *place) ask(nowMicros int64, key byte, count int32) policy.Answer {
	p.Helper()
	answers, err := decide(p.Context(), p.store, p.policy, policy.Key{key}, nowMicros, count)
	if err != nil {
		p.Fatal(err)
	}
	return answers.Asks[0]
}

func (p *place) expect(nowMicros int64, key byte, count, admitted int32, remaining int64) {
	p.Helper()
	if got := p.ask(nowMicros, key, count); got.Admitted != admitted || got.Remaining != remaining {
		p.Errorf("key %d: %+v, want %d admitted, %d remaining", key, got, admitted, remaining)
	}
}

func decide(
	ctx context.Context, store *memstore.Store, of *policy.Installed, key policy.Key, nowMicros int64, count int32,
) (policy.Answers, error) {
	var answers policy.Answers
	generation, err := store.Generation(ctx)
	if err != nil {
		return answers, err
	}
	err = store.Decide(ctx, &policy.Batch{
		Durability: of.Spec.Durability, Generation: generation, NowMicros: nowMicros,
		Asks: []policy.Ask{{Key: key, Policy: of.Number, Count: count, Cost: 1}},
	}, &answers)
	return answers, err
}

// perSecond is a policy of capacity tokens and one more each second.
func perSecond(capacity int64) policy.Spec {
	return policy.Spec{Limit: policy.Limit{Capacity: capacity, Rate: policy.Rate{N: 1, D: second}}}
}

func TestFullStoreSharesOneBucket(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 2, perSecond(10))
	p.expect(0, 1, 4, 4, 6)
	p.expect(0, 2, 4, 4, 6)
	// Full: the keys that come now have one allowance together ...
	p.expect(0, 3, 4, 4, 6)
	p.expect(0, 4, 4, 4, 2)
	p.expect(0, 5, 4, 2, 0)
	// ... and the ones that were here keep theirs.
	p.expect(0, 1, 0, 0, 6)
	p.expect(0, 1, 20, 6, 0)
	if got := len(p.store.Buckets()); got != 2 {
		t.Errorf("%d buckets, at most 2", got)
	}
	// The shared bucket passes through a change like any other.
	p.policy = p.install(second, 1, perSecond(20))
	p.expect(4*second, 6, 20, 4, 0)
	// Room again: key 2 is idle, key 1 is not.
	p.policy = p.install(7*second, 2, perSecond(7))
	if deleted, _ := p.store.Clean(t.Context(), 10*second); deleted != 2 {
		t.Errorf("%d buckets deleted, want 2", deleted)
	}
	p.expect(10*second, 6, 20, 7, 0)
	if got := len(p.store.Buckets()); got != 1 {
		t.Errorf("%d buckets, want the one of the new key", got)
	}
}

func TestLose(t *testing.T) {
	t.Parallel()
	empty := perSecond(10)
	empty.AfterLoss = policy.LossEmpty
	durable := perSecond(10)
	durable.Durability = policy.Durable
	for name, c := range map[string]struct {
		spec      policy.Spec
		remaining int64 // of a key that had 3, two seconds after the loss
		absent    int64 // of a key that had never been seen
	}{
		"idle":    {perSecond(10), 10, 10},
		"empty":   {empty, 2, 2},
		"durable": {durable, 5, 10},
	} {
		p := newPlace(t, plenty, c.spec)
		p.ask(100*second, 1, 7)
		p.lose(100 * second)
		for key, want := range map[byte]int64{1: c.remaining, 2: c.absent} {
			if got := p.ask(102*second, key, 0); got.Remaining != want {
				t.Errorf("%s: key %d has %d two seconds after the loss, want %d", name, key, got.Remaining, want)
			}
		}
	}
}

func TestBuckets(t *testing.T) {
	t.Parallel()
	p := newPlace(t, plenty, perSecond(10))
	p.ask(5*second, 9, 3)
	p.ask(6*second, 4, 1)
	p.ask(7*second, 2, 0)    // a peek makes no bucket
	p.ask(4*second, 9, 2)    // the clock stepped back: at stays
	p.ask(20*second, 9, 999) // full again, and taken
	p.ask(20*second, 9, 1)   // denied
	want := []memstore.Bucket{
		{Policy: p.policy.Number, Version: 1, Key: policy.Key{4}, BalanceUnits: 9 * second, AtMicros: 6 * second},
		{Policy: p.policy.Number, Version: 1, Key: policy.Key{9}, BalanceUnits: 0, AtMicros: 20 * second},
	}
	if got := p.store.Buckets(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

func TestDecideRefusesStrangers(t *testing.T) {
	t.Parallel()
	p := newPlace(t, plenty, perSecond(10))
	for name, spoil := range map[string]func(*policy.Batch){
		"an unknown policy":  func(b *policy.Batch) { b.Asks[1].Policy = 2 },
		"policy 0":           func(b *policy.Batch) { b.Asks[1].Policy = 0 },
		"another durability": func(b *policy.Batch) { b.Durability = policy.Durable },
	} {
		batch := policy.Batch{Generation: 1, NowMicros: second, Asks: []policy.Ask{
			{Key: policy.Key{1}, Policy: 1, Count: 1, Cost: 1}, {Key: policy.Key{2}, Policy: 1, Count: 1, Cost: 1},
		}}
		spoil(&batch)
		var answers policy.Answers
		if err := p.store.Decide(t.Context(), &batch, &answers); err == nil {
			t.Errorf("%s: %+v, want an error", name, answers)
		}
	}
	p.expect(second, 1, 0, 0, 10) // nothing was charged
}

func TestConcurrentCallersOfOneKey(t *testing.T) {
	t.Parallel()
	p := newPlace(t, plenty, perSecond(10))
	var admitted atomic.Int32
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			answers, err := decide(t.Context(), p.store, p.policy, policy.Key{1}, 0, 1)
			if err != nil {
				t.Error(err)
				return
			}
			admitted.Add(answers.Asks[0].Admitted)
		})
	}
	callers.Wait()
	if admitted.Load() != 10 {
		t.Errorf("%d of 50 callers admitted, want 10", admitted.Load())
	}
}
