package limiter_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rationhq/ration/internal/memstore"
	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/policy"
)

// One request after the other is answered as the model answers it: nothing on
// the way rounds, adds or loses.
func TestSequentialDecisionsAreTheModels(t *testing.T) {
	t.Parallel()
	const steps = 3000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	clock := int64(1_704_067_200_000_000)
	s := newStore()
	s.nowMicros = func() int64 { return clock }
	var policies []*policy.Installed
	for i, members := range []string{"", `, "durability": "durable"`, `, "costs": {"default": 3, "max": 7}`} {
		policies = append(policies, s.install(t, fmt.Sprint("op", i), 5+20*i, members))
	}
	model := memstore.New(1 << 20)
	for _, p := range policies {
		if _, err := model.Install(t.Context(), p.ID, &policy.Change{Spec: p.Spec}, 0, p.InstalledAtMicros); err != nil {
			t.Fatal(err)
		}
	}
	s.leaves(newKeysAreSettled())
	r := start(t, s, patient, func(c *limiter.Config) { c.Lanes = 3 })
	for step := range steps {
		clock += random.Int64N(500_000)
		p := policies[random.IntN(len(policies))]
		asked := request(p.ID, fmt.Sprint("account", random.IntN(5)), random.Int64N(8)) // 0: not stated
		asked.Peek = random.IntN(4) == 0
		got, err := r.Decide(t.Context(), asked)
		if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		if want := modelled(t, model, p, asked, clock); got != want {
			t.Fatalf("step %d, %+v:\n got %+v\nwant %+v", step, asked, got, want)
		}
	}
}

// newKeysAreSettled lets the fast path decide only keys that the settling path
// has seen.
func newKeysAreSettled() func(sentCall, policy.Key) policy.AskStatus {
	var mu sync.Mutex
	known := map[policy.Key]bool{}
	return func(c sentCall, key policy.Key) policy.AskStatus {
		mu.Lock()
		defer mu.Unlock()
		if c.function != take {
			known[key] = true
		}
		if !known[key] {
			return policy.Again
		}
		return policy.Answered
	}
}

// modelled is a request's decision by the model.
func modelled(t *testing.T, model *memstore.Store, p *policy.Installed, asked *policy.Request, clock int64) policy.Decision {
	t.Helper()
	generation, _ := model.Generation(t.Context())
	cost, _ := p.Spec.Charge(asked.Values[policy.Operation], asked.Cost)
	ask := policy.Ask{Key: policy.KeyOf(p.ID, p.Spec, &asked.Values), Policy: p.Number, Count: 1, Cost: cost}
	if asked.Peek {
		ask.Count = 0
	}
	batch := policy.Batch{Durability: p.Spec.Durability, Generation: generation, NowMicros: clock, Asks: []policy.Ask{ask}}
	var answers policy.Answers
	if err := model.Decide(t.Context(), &batch, &answers); err != nil || answers.Stale {
		t.Fatalf("the model: %v, stale %t", err, answers.Stale)
	}
	answer := answers.Asks[0]
	decision := policy.Decision{
		Policy: p, Allowed: answer.Admitted == 1, Remaining: answer.Remaining,
		ResetAfterMicros: answer.ResetAfterMicros, ResetAtMicros: clock + answer.ResetAfterMicros,
	}
	if asked.Peek {
		decision.Allowed = answer.RetryAfterMicros == 0
	}
	if !decision.Allowed {
		decision.RetryAfterMicros = answer.RetryAfterMicros
	}
	return decision
}

// While the clock stands still exactly the capacity is admitted, whoever asks
// at the same time and however: one by one, in batches, with peeks between.
func TestConcurrentCallersGetExactlyTheCapacity(t *testing.T) {
	t.Parallel()
	const callers, capacity = 50, 10
	keys := 200
	if testing.Short() {
		keys = 40
	}
	s := newStore()
	s.nowMicros = func() int64 { return 1_704_067_200_000_000 }
	s.install(t, "op", capacity, "")
	s.leaves(newKeysAreSettled())
	r := start(t, s, patient, func(c *limiter.Config) { c.Lanes, c.QueueMax = 2, callers*keys })
	admitted := make([]atomic.Int64, keys)
	note := func(key int, asked *policy.Request, got policy.Result) {
		if got.Err != nil {
			t.Errorf("key %d: %v", key, got.Err)
		} else if got.Decision.Allowed && !asked.Peek {
			admitted[key].Add(1)
		}
	}
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			var requests []*policy.Request
			for key := range keys {
				asked := request("op", fmt.Sprint("account", key), 1)
				if caller%2 == 0 {
					requests = append(requests, asked)
					continue
				}
				decision, err := r.Decide(context.Background(), asked)
				note(key, asked, policy.Result{Decision: decision, Err: err})
				asked.Peek = true
				decision, err = r.Decide(context.Background(), asked)
				note(key, asked, policy.Result{Decision: decision, Err: err})
			}
			results := make([]policy.Result, len(requests))
			r.DecideBatch(context.Background(), requests, results)
			for i := range requests {
				note(i, requests[i], results[i])
			}
		})
	}
	group.Wait()
	for key := range admitted {
		if got := admitted[key].Load(); got != capacity {
			t.Errorf("key %d: %d admitted, want exactly %d", key, got, capacity)
		}
	}
}
