package storetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/rationhq/ration/policy"
)

// callChecks are the guarantees of the calls around a bucket's arithmetic:
// peeks, counted asks, batches, generations, absent buckets and the cleaner.
func callChecks() []check {
	return []check{
		{"a peek takes nothing", peekTakesNothing},
		{"a counted ask is decided one caller after the other", countedAsk},
		{"the asks of a batch do not touch each other", batchOfManyKeys},
		{"a call on another generation decides nothing", staleGeneration},
		{"an absent bucket is the idle bucket", absentIsIdle},
		{"cleaning deletes what is idle and nothing else", cleaningIsExact},
		{"a bucket ahead of the clock is not cleaned", aheadOfTheClockStays},
		{"cleaning changes no answer", cleaningChangesNoAnswer},
	}
}

func peekTakesNothing(s *scene) {
	s.install(0, 10, "1", "1")
	for range 20 {
		s.holds(0, "key", 10)
	}
	s.spend(0, "key", 10)
	if got := s.ask(0, "key", 0, 7); got.Admitted != 0 || got.RetryAfterMicros != 7*second {
		s.Errorf("a peek of cost 7 at an empty bucket: %+v", got)
	}
	if got := s.ask(8*second, "key", 0, 7); got.RetryAfterMicros != 0 || got.Remaining != 8 {
		s.Errorf("a peek of cost 7 at a bucket of 8: %+v", got)
	}
	s.allow(8*second, "key", 8, 0)
}

func countedAsk(s *scene) {
	s.install(0, 40, "20", "1")
	for _, c := range []struct {
		count    int32
		cost     int64
		admitted int32
		after    policy.Answer
	}{
		{8, 5, 8, policy.Answer{RetryAfterMicros: 250 * millisecond, ResetAfterMicros: 2 * second}},
		{9, 5, 8, policy.Answer{RetryAfterMicros: 250 * millisecond, ResetAfterMicros: 2 * second}},
		{50, 7, 5, policy.Answer{Remaining: 5, RetryAfterMicros: 100 * millisecond, ResetAfterMicros: 1750 * millisecond}},
		{3, 7, 3, policy.Answer{Remaining: 19, ResetAfterMicros: 1050 * millisecond}},
		{2_147_483_647, 40, 1, policy.Answer{RetryAfterMicros: 2 * second, ResetAfterMicros: 2 * second}},
		{5, 41, 0, policy.Answer{Remaining: 40, RetryAfterMicros: policy.Never}},
	} {
		together, apart := fmt.Sprintf("%d of %d", c.count, c.cost), fmt.Sprintf("%d of %d, apart", c.count, c.cost)
		want := c.after
		want.Admitted = c.admitted
		if got := s.ask(0, together, c.count, c.cost); got != want {
			s.Errorf("%s: %+v, want %+v", together, got, want)
		}
		for range c.admitted {
			s.ask(0, apart, 1, c.cost)
		}
		want.Admitted = 0
		if got := s.ask(0, apart, 0, c.cost); got != want {
			s.Errorf("%s: %+v, want %+v", apart, got, want)
		}
	}
}

func batchOfManyKeys(s *scene) {
	s.install(0, 10, "1", "1")
	callers := map[policy.Key]int32{}
	batch := policy.Batch{Durability: s.durability, Generation: s.generation, NowMicros: epochMicros}
	const keys = 200
	for i := range keys {
		key := keyOf("scene", strconv.Itoa(i))
		callers[key] = int32(i)
		batch.Asks = append(batch.Asks, policy.Ask{Key: key, Policy: s.policy.Number, Count: int32(i), Cost: 1})
	}
	slices.SortFunc(batch.Asks, func(a, b policy.Ask) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	answers := s.decide(&batch)
	if len(answers.Asks) != keys {
		s.Fatalf("%d answers to %d asks", len(answers.Asks), keys)
	}
	for i, ask := range batch.Asks {
		count, got := callers[ask.Key], answers.Asks[i]
		if want := min(count, 10); got.Admitted != want || got.Remaining != int64(10-want) {
			s.Errorf("%d callers of one key: %+v", count, got)
		}
	}
}

func staleGeneration(s *scene) {
	s.install(0, 10, "1", "1000")
	for _, off := range []int64{-1, 1} {
		answers := s.decide(&policy.Batch{
			Durability: s.durability, Generation: s.generation + off, NowMicros: epochMicros,
			Asks: []policy.Ask{{Key: keyOf("scene", "key"), Policy: s.policy.Number, Count: 3, Cost: 1}},
		})
		if !answers.Stale {
			s.Errorf("generation %d of %d: %+v, want stale", s.generation+off, s.generation, answers)
		}
	}
	s.holds(0, "key", 10)

	before := s.generation
	s.install(0, 20, "1", "1000")
	if s.generation == before {
		s.Errorf("a change left the generation at %d", before)
	}
}

func absentIsIdle(s *scene) {
	s.install(0, 10, "1", "1")
	s.spend(0, "spent", 3) // full again after 3 s
	same := func(at int64) {
		s.Helper()
		if spent, absent := s.peek(at, "spent"), s.peek(at, "absent"); spent != absent {
			s.Errorf("at %d µs: refilled %+v, absent %+v", at, spent, absent)
		}
	}
	same(3 * second)
	s.install(10*second, 100, "1", "3")
	same(10 * second)
	same(20 * second)
	s.install(20*second, 50, "2", "7")
	same(20 * second)
	same(5 * second) // the clock stepped back
	same(100 * second)
	s.install(30*day, 3, "1", "1")
	same(30 * day)
	same(31 * day)
}

func cleaningIsExact(s *scene) {
	s.install(0, 10, "1", "1")
	s.spend(0, "key", 4)
	s.spend(0, "other", 2)
	s.clean(4*second - 1)
	s.deny(4*second-1, "key", 10, 9, 1) // still there, a microsecond short of full
	if deleted := s.clean(4 * second); deleted == 0 {
		s.Errorf("a full bucket stayed")
	}
	s.holds(4*second, "key", 10)
	if deleted := s.clean(4 * second); deleted != 0 {
		s.Errorf("%d buckets deleted where none was left", deleted)
	}

	// After a raise a key that never spent is not full, and its bucket may go
	// when it holds what the idle bucket holds, no later.
	s.spend(5*second, "key", 1)
	s.install(6*second, 100, "1", "1000")
	if deleted := s.clean(6 * second); deleted == 0 {
		s.Errorf("a bucket equal to the idle one stayed")
	}
	s.holds(6*second, "key", 10)
	s.spend(6*second, "key", 1)
	s.clean(80_006 * second)
	s.holds(80_006*second, "key", 89)
	s.holds(80_006*second, "absent", 90)
}

func aheadOfTheClockStays(s *scene) {
	// The clock runs to 100 s and steps back, and a lowered capacity makes the
	// bucket full where it stands: at 100 s. As long as the clock is behind
	// that, the bucket earns nothing after spending, and an idle one does.
	s.install(0, 10, "1", "1")
	s.spend(100*second, "ahead", 1)
	s.install(50*second, 9, "1", "1")
	s.clean(60 * second)
	s.allow(60*second, "ahead", 9, 0)
	s.deny(60*second, "ahead", 1, 0, 41*second)
	s.allow(60*second, "absent", 9, 0)
	s.deny(60*second, "absent", 1, 0, second)
}

// neverCleans is a store that keeps every bucket.
type neverCleans struct{ Store }

func (neverCleans) Clean(context.Context, int64) (int, error) { return 0, nil }

// cleaningChangesNoAnswer plays a history to a store that cleans and to one
// that does not. Its clock never steps back, because what a key knows of an
// instant in the future goes with it; and it has no operation ids, whose
// outcomes are meant to be forgotten.
func cleaningChangesNoAnswer(s *scene) {
	const seed, steps = 13, 400
	played := game{context: s.Context(), model: neverCleans{s.another()}, subject: s.store}
	story := newHistory(seed, steps, pace{cleansPercent: 20})
	if difference := played.play(story); difference != nil {
		s.Error(difference)
	}
}
