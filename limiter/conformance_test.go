package limiter_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
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
		AtMicros: clock, ResetAfterMicros: answer.ResetAfterMicros,
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

// One request after the other over several policies of every kind, with
// operation ids that come again, is answered as the model answers it.
func TestSequentialClaimsAreTheModels(t *testing.T) {
	t.Parallel()
	const steps = 1000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	clock := int64(1_704_067_200_000_000)
	s := newStore()
	s.nowMicros = func() int64 { return clock }
	model := memstore.New(1 << 20)
	var installed []*policy.Installed
	for i, p := range []struct{ id, operation, per, limit, members string }{
		{"1", "a*", `["account"]`, bucket(20), ""},
		{"2", "ab", `["user"]`, window(30), ""},
		{"3", "a*", `["account", "user"]`, `{"algorithm": "sliding_window_log", "limit": 9, "windowSeconds": 5}`, `, "mode": "shadow"`},
		{"4", "ab", `[]`, `{"algorithm": "sliding_window_counter", "limit": 40, "windowSeconds": 3}`, `, "durability": "durable"`},
		{"5", "abc", `["account"]`, slots(12), ""},
	} {
		installed = append(installed, s.installOn(t, p.operation, p.id, p.per, p.limit, p.members))
		if _, err := model.Install(t.Context(), p.id, &policy.Change{Spec: installed[i].Spec}, 0, clock); err != nil {
			t.Fatal(err)
		}
	}
	generation, _ := model.Generation(t.Context())
	set := policy.Compile(generation, installed)
	r := start(t, s, patient, func(c *limiter.Config) { c.Lanes = 3 })
	for step := range steps {
		clock += random.Int64N(1_000_000)
		asked := request([]string{"a", "ab", "abc"}[random.IntN(3)], fmt.Sprint("account", random.IntN(2)), random.Int64N(4)) // 0: not stated
		asked.Values[policy.User] = fmt.Sprint("user", random.IntN(2))
		switch random.IntN(4) {
		case 0:
			asked.Peek = true
		case 1:
			asked.OperationID = fmt.Sprint(random.IntN(300))
		}
		got, err := r.Decide(t.Context(), asked)
		want, wantReused := claimed(t, model, set, asked, clock)
		switch {
		case wantReused:
			hasReason(t, err, policy.ReasonOperationReused)
			continue
		case err != nil:
			t.Fatalf("step %d: %v", step, err)
		}
		dropSlotIDs(&got)
		dropSlotIDs(&want)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d, %+v:\n got %+v %+v\nwant %+v %+v", step, asked, got, got.Detail, want, want.Detail)
		}
	}
}

// claimed is a request's decision by the model, unless its operation id
// belongs to another one.
func claimed(t *testing.T, model *memstore.Store, set *policy.Set, asked *policy.Request, clock int64) (decision policy.Decision, reused bool) {
	t.Helper()
	var matched policy.Matched
	if err := set.Match(asked, &matched); err != nil {
		t.Fatal(err)
	}
	claim := policy.Claim{Checks: matched.Checks, Stated: asked.Cost, Peek: asked.Peek}
	if asked.OperationID != "" {
		claim.Operation = policy.OperationKeyOf("", asked.Values[policy.Account], asked.OperationID)
		claim.Content = policy.ContentOf(&asked.Values)
	}
	var verdicts policy.Verdicts
	err := model.DecideClaims(t.Context(), &policy.Claims{
		Generation: set.Generation(), NowMicros: clock, RetentionMicros: retention.Microseconds(), Claims: []policy.Claim{claim},
	}, &verdicts)
	if err != nil || verdicts.Stale {
		t.Fatalf("the model: %v, stale %t", err, verdicts.Stale)
	}
	verdict := &verdicts.Verdicts[0]
	if verdict.Status == policy.ClaimReused {
		return policy.Decision{}, true
	}
	decision, err = verdict.Decision(asked.OperationID, claim.Checks, nil)
	if err != nil {
		t.Fatalf("the model: %v", err)
	}
	return decision, false
}

// dropSlotIDs leaves out what is random.
func dropSlotIDs(decision *policy.Decision) {
	if decision.Detail == nil {
		return
	}
	for i := range decision.Detail.Parts {
		decision.Detail.Parts[i].Slot.ID = policy.SlotID{}
	}
}

// While the clock stands still nobody gets more than the tightest of several
// policies has, whoever asks at the same time, and no id is charged twice.
func TestConcurrentClaimsGetExactlyTheCapacity(t *testing.T) {
	t.Parallel()
	const callers, capacity, users = 20, 20, 4
	s := newStore()
	s.nowMicros = func() int64 { return 1_704_067_200_000_000 }
	s.installBoth(t, capacity, capacity-users)
	r := start(t, s, patient, func(c *limiter.Config) { c.Lanes, c.QueueMax = 2, 10_000 })
	var byAccount, byUser [users]atomic.Int64
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for i := range 40 {
				user := (caller/2 + i) % users
				asked := by(fmt.Sprint("account", i%users), fmt.Sprint("user", user), 1)
				if i%2 == 0 {
					asked.OperationID = fmt.Sprint(i, " of ", user, " by ", caller/2) // asked by two callers
				}
				decision, err := r.Decide(context.Background(), asked)
				if err != nil {
					t.Errorf("caller %d: %v", caller, err)
				} else if decision.Allowed && decision.Source == policy.FromStore {
					byAccount[i%users].Add(1)
					byUser[user].Add(1)
				}
			}
		})
	}
	group.Wait()
	for i := range users {
		if got := byAccount[i].Load(); got > capacity {
			t.Errorf("account %d: %d admitted of %d", i, got, capacity)
		}
		if got := byUser[i].Load(); got != capacity-users {
			t.Errorf("user %d: %d admitted, want exactly %d", i, got, capacity-users)
		}
	}
}
