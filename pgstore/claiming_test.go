package pgstore_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// retention is how long the tests' outcomes are kept.
const retention = 600 * second

// algorithms are one shape of each, of which nothing comes back within a test.
func algorithms(capacity int64) map[string]shape {
	const long = "86400"
	return map[string]shape{
		"token_bucket":           {capacity: capacity},
		"fixed_window":           {capacity: capacity, seconds: long, algorithm: policy.FixedWindow},
		"sliding_window_counter": {capacity: capacity, seconds: long, algorithm: policy.SlidingWindowCounter},
		"strict_counter":         {capacity: capacity, seconds: long, algorithm: policy.SlidingWindowCounter, strict: true},
		"sliding_window_log":     {capacity: capacity, seconds: long, algorithm: policy.SlidingWindowLog},
		"concurrency":            {capacity: capacity, seconds: long, algorithm: policy.Concurrency},
	}
}

// check asks cost tokens of a key of a policy.
func check(of *policy.Installed, number uint64, cost int64) policy.Check {
	key := keyOf(number)
	key[len(key)-1] = byte(of.Number)
	return policy.Check{Policy: of, Key: key, Cost: cost, Priced: true}
}

// claim asks all of some checks.
func claim(checks ...policy.Check) policy.Claim { return policy.Claim{Checks: checks} }

// operating asks them under an operation id.
func operating(operation string, checks ...policy.Check) policy.Claim {
	return policy.Claim{Operation: policy.OperationKeyOf("", "", operation), Content: policy.Key{1}, Checks: checks}
}

// claims makes a call of some claims at an instant after the epoch.
func (b *bench) claims(atMicros int64, claims ...policy.Claim) *policy.Claims {
	b.Helper()
	return &policy.Claims{Generation: b.generation(), NowMicros: epochMicros + atMicros, RetentionMicros: retention, Claims: claims}
}

// decideClaims decides claims as a lane does.
func decideClaims(session *pgstore.Session, claims *policy.Claims) ([]policy.Verdict, error) {
	var verdicts policy.Verdicts
	s := subject{session: session}
	err := s.DecideClaims(context.Background(), claims, &verdicts)
	if err == nil && verdicts.Stale {
		err = fmt.Errorf("the generation %d is stale", claims.Generation)
	}
	return verdicts.Verdicts, err
}

// claim decides claims; an error ends the test.
func (b *bench) claim(session *pgstore.Session, atMicros int64, claims ...policy.Claim) []policy.Verdict {
	b.Helper()
	verdicts, err := decideClaims(session, b.claims(atMicros, claims...))
	if err != nil {
		b.Fatal(err)
	}
	return verdicts
}

// peek is what is left of a key.
func (b *bench) peek(session *pgstore.Session, atMicros int64, of *policy.Installed, number uint64) policy.Part {
	b.Helper()
	return b.claim(session, atMicros, policy.Claim{Peek: true, Checks: []policy.Check{check(of, number, 1)}})[0].Parts[0]
}

// crew is sessions of two instances that work side by side.
type crew struct {
	*bench

	sessions []*pgstore.Session
}

// crew opens the sessions of a second store beside the bench's own.
func (b *bench) crew(size int) *crew {
	b.Helper()
	c := &crew{bench: b}
	stores := [...]*pgstore.Store{b.store, open(b, b.db)}
	for i := range size {
		session := stores[i%len(stores)].NewSession()
		b.Cleanup(session.Close)
		if err := session.Connect(b.Context()); err != nil { // one by one: all at once, they take longer than each may
			b.Fatal(err)
		}
		c.sessions = append(c.sessions, session)
	}
	return c
}

// each lets every session do its share of times pieces of work, all at once.
// Work says what is wrong with an error.
func (c *crew) each(times int, work func(session *pgstore.Session, turn int) error) {
	c.Helper()
	turns := make(chan int, times)
	for turn := range times {
		turns <- turn
	}
	close(turns)
	var running sync.WaitGroup
	for _, session := range c.sessions {
		running.Go(func() {
			for turn := range turns {
				if err := work(session, turn); err != nil {
					c.Errorf("turn %d: %v", turn, err)
					return
				}
			}
		})
	}
	running.Wait()
}
