package pgstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

const (
	racers       = 8
	raceKeys     = 2000 // of each table, half of them of each policy
	raceAsksMax  = 48
	raceCapacity = 60

	// raceLong is how long the races of a usual run last; RATION_LONG says otherwise.
	raceLong = 4 * time.Second

	// roundLong is when a race begins anew with other keys, before all of them are empty.
	roundLong = 4 * time.Second
)

// race is eight sessions, the cleaner and policy changes at once, all on the
// same keys and on a clock that also steps back.
type race struct {
	*bench

	clock  atomic.Int64
	slow   [2]*policy.Installed // by durability: earns less than a token meanwhile, so every charge is seen in the balance
	quick  [2]*policy.Installed // is full again soon, so that the cleaner has rows to take
	base   uint64               // of the round's keys
	stale  atomic.Int64
	undone atomic.Int64
}

// charge is what one session was admitted for a key.
type charge struct {
	tokens int64
	nows   []int64 // instants of the calls that charged
}

// ledger is a session's own record of its charges.
type ledger map[policy.Key]*charge

func TestRaces(t *testing.T) {
	t.Parallel()
	long := raceLong
	if text, set := os.LookupEnv("RATION_LONG"); set {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatalf("RATION_LONG: %v", err)
		}
	}
	random := newRandom(t)
	r := &race{bench: newBench(t)}
	r.clock.Store(epochMicros + second)
	for _, durability := range []policy.Durability{policy.Fast, policy.Durable} {
		r.slow[durability] = r.install("slow-"+durability.String(), 0, shape{capacity: raceCapacity, durability: durability}, 0)
		r.quick[durability] = r.install("quick-"+durability.String(), 0, shape{capacity: 5, seconds: "0.002", durability: durability}, 0)
	}
	const deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
	before := scalar[int64](r.bench, deadlocks)
	for end := time.Now().Add(long); time.Now().Before(end); r.base += raceKeys {
		r.round(min(roundLong, long), random) // never a shorter one: sessions take a while to connect
	}
	if after := scalar[int64](r.bench, deadlocks); after != before {
		t.Errorf("%d deadlocks", after-before)
	}
	if r.stale.Load() == 0 {
		t.Error("no call met a policy change")
	}
	t.Logf("%d calls were stale, %d asks undecided after three calls", r.stale.Load(), r.undone.Load())
}

// round races for a while and checks every key's books.
func (r *race) round(long time.Duration, random *rand.Rand) {
	r.Helper()
	began := r.clock.Load()
	over := make(chan struct{})
	timer := time.AfterFunc(long, func() { close(over) })
	defer timer.Stop()
	var running sync.WaitGroup
	books := make([]ledger, racers)
	for i := range books {
		books[i] = make(ledger)
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		running.Go(func() { r.run(over, own, books[i]) })
	}
	var cleaned atomic.Int64
	running.Go(func() {
		for !ended(over) {
			deleted, err := r.store.Clean(r.Context(), 0, r.clock.Load())
			if err != nil {
				r.Error(err)
			}
			cleaned.Add(int64(deleted))
		}
	})
	running.Go(func() { r.change(over) })
	running.Wait()
	r.audit(books, r.clock.Load()-began)
	if cleaned.Load() == 0 {
		r.Error("the cleaner had nothing to do")
	}
}

// ended says whether a channel is closed.
func ended(over <-chan struct{}) bool {
	select {
	case <-over:
		return true
	default:
		return false
	}
}

// run decides random batches until the round is over.
func (r *race) run(over <-chan struct{}, random *rand.Rand, book ledger) {
	session := r.store.NewSession()
	defer session.Close()
	generation := r.generation()
	for !ended(over) {
		batch := r.randomBatch(random)
		batch.Generation = generation
		stale, err := r.call(session, random, batch, book)
		if err != nil {
			r.Errorf("a call failed: %v", err)
			return
		}
		if stale {
			r.stale.Add(1)
			generation = r.generation()
		}
	}
}

// randomBatch makes a batch of distinct keys in no order, a few of them much
// liked.
func (r *race) randomBatch(random *rand.Rand) *policy.Batch {
	durability := policy.Durability(random.IntN(2))
	now := r.clock.Add(random.Int64N(300))
	if random.IntN(10) == 0 {
		now -= random.Int64N(5000)
	}
	batch := &policy.Batch{Durability: durability, NowMicros: now}
	taken := make(map[uint64]bool)
	for range 1 + random.IntN(raceAsksMax) {
		number := random.Uint64N(1 + random.Uint64N(raceKeys))
		if taken[number] {
			continue
		}
		taken[number] = true
		of := r.slow[durability]
		if number%2 == 1 {
			of = r.quick[durability]
		}
		batch.Asks = append(batch.Asks, policy.Ask{
			Key: keyOf(r.base + number), Policy: of.Number, Count: 1 + random.Int32N(3), Cost: 1 + random.Int64N(3),
		})
	}
	return batch
}

// call decides a batch by whichever path a lane might send it, at most three
// calls, and books what was admitted.
func (r *race) call(session *pgstore.Session, random *rand.Rand, batch *policy.Batch, book ledger) (stale bool, err error) {
	var answers policy.Answers
	for attempt := range 3 {
		if hold := policy.HoldWait; attempt == 0 && random.IntN(4) > 0 {
			err = session.Take(r.Context(), batch, &answers)
		} else {
			if random.IntN(4) == 0 {
				hold = policy.HoldSkip
			}
			err = session.TakeNew(r.Context(), hold, batch, &answers)
		}
		if err != nil || answers.Stale {
			return answers.Stale, err
		}
		for i, answer := range answers.Asks {
			if answer.Status == policy.Answered && answer.Admitted > 0 {
				book.add(batch.Asks[i], answer.Admitted, batch.NowMicros)
			}
		}
		rest, _ := undecided(batch, &answers)
		if batch = &rest; len(batch.Asks) == 0 {
			return false, nil
		}
	}
	r.undone.Add(int64(len(batch.Asks)))
	return false, nil
}

func (l ledger) add(ask policy.Ask, admitted int32, now int64) {
	key := ask.Key
	key[len(key)-1] = byte(ask.Policy)
	if l[key] == nil {
		l[key] = new(charge)
	}
	l[key].tokens += int64(admitted) * ask.Cost
	l[key].nows = append(l[key].nows, now)
}

// change installs versions of a policy that nobody asks, so that calls become
// stale.
func (r *race) change(over <-chan struct{}) {
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for capacity := int64(1); ; capacity++ {
		current, err := r.store.Get(r.Context(), "other")
		expected := 0
		var known *policy.Error
		switch {
		case err == nil:
			expected = current.Version
		case !errors.As(err, &known) || known.Code != policy.CodeNotFound:
			r.Error(err)
		}
		change := shape{capacity: 1 + (capacity+int64(expected))%1000}.change(r)
		if _, _, err := r.store.PutAt(r.Context(), policy.Put{ID: "other", Expected: expected, Change: change, Author: policy.Author{Actor: "test"}}, r.clock.Load()); err != nil {
			r.Error(err)
		}
		select {
		case <-over:
			return
		case <-pause.C:
		}
	}
}

// audit compares every key's admissions with its balance. A slow bucket's
// first charge finds it full, at the instant of a call that charged it; from
// there on it earns n units each microsecond and stays below full.
func (r *race) audit(books []ledger, elapsed int64) {
	r.Helper()
	sum := make(ledger)
	for _, book := range books {
		for key, c := range book {
			if sum[key] == nil {
				sum[key] = new(charge)
			}
			sum[key].tokens += c.tokens
			sum[key].nows = append(sum[key].nows, c.nows...)
		}
	}
	checked := 0
	for key, c := range sum {
		number := int32(key[len(key)-1])
		for durability := range r.slow {
			slow, quick := r.slow[durability], r.quick[durability]
			switch number {
			case slow.Number:
				checked++
				r.checkSlow(slow, key, c)
			case quick.Number:
				if most := quick.Spec.Limit.Capacity + (elapsed+10_000)/2000; c.tokens > most {
					r.Errorf("quick key %x: %d tokens admitted within %d µs, at most %d", key, c.tokens, elapsed, most)
				}
			}
		}
	}
	if checked == 0 {
		r.Error("no key was charged")
	}
}

// checkSlow solves a bucket's history for the instant of its first charge.
func (r *race) checkSlow(of *policy.Installed, key policy.Key, c *charge) {
	r.Helper()
	rate := of.Spec.Limit.Rate
	key[len(key)-1] = 0
	var balance, at int64
	err := r.owner.QueryRow(r.Context(), fmt.Sprintf("SELECT balance, at FROM ration.bucket_%s WHERE key = $1::text::uuid", of.Spec.Durability),
		fmt.Sprintf("%x", key)).Scan(&balance, &at)
	if err != nil {
		r.Errorf("key %x was charged %d tokens: %v", key, c.tokens, err)
		return
	}
	earned := balance - (of.Spec.Limit.Capacity-c.tokens)*rate.D
	if first := at - earned/rate.N; earned%rate.N != 0 || !slices.Contains(c.nows, first) {
		r.Errorf("%s key %x: %d tokens charged, balance %d at %d: it would have earned %d units since %d, when nobody was charged",
			of.Spec.Durability, key, c.tokens, balance, at, earned, first)
	}
}
