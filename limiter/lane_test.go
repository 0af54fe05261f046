package limiter_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/policy"
)

// occupy sends a request that the stopped store holds, so that what is asked
// next gathers. Its answer comes when the store resumes.
func (r *running) occupy(s *store, operation string) (first *pending, resume func()) {
	r.t.Helper()
	s.calls()
	resume = s.stop()
	first = r.ask(request(operation, "first", 1))
	synctest.Wait()
	if sent := s.calls(); len(sent) != 1 || len(sent[0].batch.Asks) != 1 {
		r.t.Fatalf("a lone request did not go at once: %+v", sent)
	}
	return first, resume
}

func TestALoneRequestGoesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		begun := time.Now()
		r.ask(request("op", "A", 4)).is(true, 6)
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("it waited for %s", waited)
		}
	})
}

func TestRequestsGatherWhileACallIsOnItsWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := s.install(t, "op", 10, "")
		r := start(t, s)
		first, resume := r.occupy(s, "op")
		var waiting []*pending
		for _, account := range []string{"C", "A", "B", "A", "A"} {
			waiting = append(waiting, r.ask(request("op", account, 2)))
			synctest.Wait()
		}
		resume()
		first.is(true, 9)
		for i, remaining := range []int64{8, 8, 8, 6, 4} {
			waiting[i].is(true, remaining)
		}
		sent := s.calls()
		if len(sent) != 1 || sent[0].function != take {
			t.Fatalf("got %+v, want one call", sent)
		}
		counts := map[policy.Key]int32{}
		for _, ask := range sent[0].batch.Asks {
			counts[ask.Key] = ask.Count
		}
		if !slices.IsSortedFunc(sent[0].batch.Asks, func(a, b policy.Ask) int { return bytes.Compare(a.Key[:], b.Key[:]) }) {
			t.Error("the keys do not ascend")
		}
		key := func(account string) policy.Key { return policy.KeyOf(p.ID, p.Spec, &request("op", account, 1).Values) }
		if len(counts) != 3 || counts[key("A")] != 3 || counts[key("B")] != 1 || counts[key("C")] != 1 {
			t.Errorf("counts %v, want three for A and one each for B and C", counts)
		}
	})
}

// The first callers get what there is, and each sees what was left behind him.
func TestFirstCallersAreAdmittedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 7, "")
		r := start(t, s)
		first, resume := r.occupy(s, "op")
		var waiting []*pending
		for range 5 {
			waiting = append(waiting, r.ask(request("op", "A", 2)))
			synctest.Wait()
		}
		resume()
		first.is(true, 6)
		for i, remaining := range []int64{5, 3, 1} {
			if d := waiting[i].is(true, remaining); d.RetryAfterMicros != 0 {
				t.Errorf("caller %d is admitted and told to wait %d µs", i, d.RetryAfterMicros)
			}
		}
		for _, denied := range waiting[3:] {
			if d := denied.is(false, 1); d.RetryAfterMicros != 1_000_000 {
				t.Errorf("a denied caller is told to wait %d µs, want 1 s", d.RetryAfterMicros)
			}
		}
	})
}

func TestAnotherCostOfAKeyWaitsItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		first, resume := r.occupy(s, "op")
		var waiting []*pending
		for _, cost := range []int64{1, 1, 5, 1, 5} { // the fourth must not overtake the third
			waiting = append(waiting, r.ask(request("op", "A", cost)))
			synctest.Wait()
		}
		resume()
		first.is(true, 9)
		for i, want := range []struct {
			allowed   bool
			remaining int64
		}{{true, 9}, {true, 8}, {true, 3}, {true, 2}, {false, 2}} {
			waiting[i].is(want.allowed, want.remaining)
		}
		var counts []int32
		for _, c := range s.calls() {
			counts = append(counts, c.batch.Asks[0].Count)
		}
		if !slices.Equal(counts, []int32{2, 1, 1, 1}) {
			t.Errorf("calls of %v callers, want 2, 1, 1, 1", counts)
		}
	})
}

func TestPeeksDoNotJoinCharges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		first, resume := r.occupy(s, "op")
		peek := request("op", "A", 8)
		peek.Peek = true
		var waiting []*pending
		for _, asked := range []*policy.Request{peek, peek, request("op", "A", 8), peek} {
			waiting = append(waiting, r.ask(asked))
			synctest.Wait()
		}
		resume()
		first.is(true, 9)
		waiting[0].is(true, 10)
		waiting[1].is(true, 10)
		waiting[2].is(true, 2)
		if d := waiting[3].is(false, 2); d.RetryAfterMicros != 6_000_000 {
			t.Errorf("a peek is told to wait %d µs, want 6 s", d.RetryAfterMicros)
		}
		var counts []int32
		for _, c := range s.calls() {
			counts = append(counts, c.batch.Asks[0].Count)
		}
		if !slices.Equal(counts, []int32{0, 1, 0}) {
			t.Errorf("calls of %v callers, want 0, 1, 0", counts)
		}
	})
}

func TestBatchesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s, func(c *limiter.Config) { c.BatchAsksMax = 4 })
		first, resume := r.occupy(s, "op")
		var waiting []*pending
		for i := range 10 {
			waiting = append(waiting, r.ask(request("op", fmt.Sprint("account", i), 1)))
		}
		synctest.Wait()
		resume()
		first.is(true, 9)
		for _, p := range waiting {
			p.is(true, 9)
		}
		var sizes []int
		for _, c := range s.calls() {
			sizes = append(sizes, len(c.batch.Asks))
		}
		if !slices.Equal(sizes, []int{4, 4, 2}) {
			t.Errorf("batches of %v, want 4, 4, 2", sizes)
		}
	})
}

func TestFastAndDurableNeverShareABatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		numbers := map[int32]policy.Durability{
			s.install(t, "quick", 100, "").Number:                         policy.Fast,
			s.install(t, "kept", 100, `, "durability": "durable"`).Number: policy.Durable,
		}
		r := start(t, s)
		results := make([]policy.Result, 40)
		var requests []*policy.Request
		for i := range results {
			requests = append(requests, request([]string{"quick", "kept"}[i%2], fmt.Sprint("account", i/4), 1))
		}
		r.DecideBatch(t.Context(), requests, results)
		for i, result := range results {
			if result.Err != nil || !result.Decision.Allowed {
				t.Errorf("request %d: %+v", i, result)
			}
		}
		for _, c := range s.calls() {
			for _, ask := range c.batch.Asks {
				if numbers[ask.Policy] != c.batch.Durability {
					t.Errorf("policy %d is in a %s batch", ask.Policy, c.batch.Durability)
				}
			}
		}
	})
}

func TestAKeyKeepsItsLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 1000, "")
		r := start(t, s, func(c *limiter.Config) { c.Lanes, c.BatchAsksMax, c.QueueMax = 3, 1000, 1000 })
		resume := s.stop()
		var waiting []*pending
		for range 5 {
			for i := range 30 {
				waiting = append(waiting, r.ask(request("op", fmt.Sprint("account", i), 1)))
			}
			synctest.Wait()
		}
		resume()
		for _, p := range waiting {
			if got := <-p.result; got.Err != nil {
				t.Error(got.Err)
			}
		}
		// Each lane had one call on its way and gathers the rest in one more:
		// a key that had gone by two lanes would be in three calls or more.
		sent := s.calls()
		calls := map[policy.Key]int{}
		for _, c := range sent {
			for _, ask := range c.batch.Asks {
				calls[ask.Key]++
			}
		}
		if len(sent) != 6 {
			t.Errorf("%d calls, want two of each of three lanes", len(sent))
		}
		for key, n := range calls {
			if n > 2 {
				t.Errorf("key %x is in %d calls", key, n)
			}
		}
	})
}

func TestAFullQueueAnswersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s, func(c *limiter.Config) { c.QueueMax = 3 })
		first, resume := r.occupy(s, "op")
		var waiting []*pending
		for range 3 {
			waiting = append(waiting, r.ask(request("op", "A", 1)))
			synctest.Wait()
		}
		begun := time.Now()
		r.ask(request("op", "A", 1)).fails(policy.ReasonOverloaded)
		results := make([]policy.Result, 2)
		r.DecideBatch(t.Context(), []*policy.Request{request("op", "A", 1), request("op", "B", 1)}, results)
		for _, result := range results {
			hasReason(t, result.Err, policy.ReasonOverloaded)
		}
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("it took %s to say so", waited)
		}
		resume()
		first.is(true, 9)
		for i, p := range waiting {
			p.is(true, int64(9-i))
		}
		r.ask(request("op", "A", 1)).is(true, 6) // the refused ones were not charged
	})
}

// What fits goes, in order; what does not fit fails alone.
func TestABatchGoesAsFarAsThereIsRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s, func(c *limiter.Config) { c.QueueMax = 2 })
		results := make([]policy.Result, 5)
		var requests []*policy.Request
		for range results {
			requests = append(requests, request("op", "A", 1))
		}
		r.DecideBatch(t.Context(), requests, results)
		for i, result := range results {
			if i >= 2 {
				hasReason(t, result.Err, policy.ReasonOverloaded)
			} else if result.Err != nil || result.Decision.Remaining != int64(9-i) {
				t.Errorf("request %d: %+v", i, result)
			}
		}
	})
}
