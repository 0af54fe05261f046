package limiter_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rationhq/ration/policy"
)

// within gives a request with a deadline of its own.
func within(millis int, r *policy.Request) *policy.Request {
	r.DeadlineMillis = millis
	return r
}

// Who leaves before his call is sent is never charged.
func TestADeadlineInTheQueueChargesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		first, resume := r.occupy(s, "op")
		impatient := r.ask(within(10, request("op", "A", 1)))
		begun := time.Now()
		if err := impatient.fails(policy.ReasonStoreUnavailable); isUnsure(err) {
			t.Error("it is told that it may be charged")
		}
		if waited := time.Since(begun); waited != 10*time.Millisecond {
			t.Errorf("it waited for %s, want its own 10 ms", waited)
		}
		resume()
		first.is(true, 9)
		synctest.Wait()
		if sent := s.calls(); len(sent) != 0 {
			t.Errorf("it was sent all the same: %+v", sent)
		}
		r.ask(request("op", "A", 1)).is(true, 9)
		if got := r.counted("ration_uncertain_total"); got != 0 {
			t.Errorf("%v count as uncertain", got)
		}
	})
}

// Who leaves after his call was sent may be charged, and is told so.
func TestADeadlineOnTheWayIsUncertain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 1, "")
		r := start(t, s)
		resume := s.stop()
		charged := r.ask(request("op", "A", 1))
		synctest.Wait()
		denied := r.ask(request("op", "A", 2)) // in the next call, never sent
		begun := time.Now()
		if err := charged.fails(policy.ReasonStoreUnavailable); !isUnsure(err) {
			t.Errorf("got %v, want to be told that the charge is not known", err)
		}
		if waited := time.Since(begun); waited != timeout {
			t.Errorf("it waited for %s, want %s", waited, timeout)
		}
		if err := denied.fails(policy.ReasonStoreUnavailable); isUnsure(err) {
			t.Error("what was not sent is uncertain")
		}
		resume()
		synctest.Wait()
		r.ask(request("op", "A", 1)).is(false, 0)
		r.isCounted(1, "ration_uncertain_total", "policy", "op")
		r.isCounted(1, "ration_decisions_total", "policy", "op", "outcome", "uncertain", "source", "store")
		r.isCounted(1, "ration_late_results_total", "outcome", "allowed")
		r.isCounted(1, "ration_late_results_total")
	})
}

func TestAClientThatIsGoneIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		resume := s.stop()
		ctx, cancel := context.WithCancel(t.Context())
		sent := r.askUnder(ctx, request("op", "A", 1))
		synctest.Wait()
		queued := r.askUnder(ctx, request("op", "A", 1))
		synctest.Wait()
		begun := time.Now()
		cancel()
		if err := sent.fails(policy.ReasonStoreUnavailable); !isUnsure(err) {
			t.Errorf("got %v of the call on its way", err)
		}
		if err := queued.fails(policy.ReasonStoreUnavailable); isUnsure(err) {
			t.Errorf("got %v of the queued call", err)
		}
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("they waited for %s", waited)
		}
		resume()
		synctest.Wait()
		s.calls()
		r.askUnder(ctx, request("op", "A", 1)).fails(policy.ReasonStoreUnavailable)
		synctest.Wait()
		if calls := s.calls(); len(calls) != 0 {
			t.Errorf("a client that was gone before it asked was charged: %+v", calls)
		}
		r.ask(request("op", "A", 1)).is(true, 8)
	})
}

func TestDeadlinesAreOnlyShortened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		resume := s.stop()
		defer resume()
		for _, c := range []struct {
			millis      int
			outer, want time.Duration
		}{
			{0, time.Hour, timeout},
			{10_000, time.Hour, timeout},
			{1 << 30, time.Hour, timeout},
			{7, time.Hour, 7 * time.Millisecond},
			{7, 3 * time.Millisecond, 3 * time.Millisecond},
			{0, 3 * time.Millisecond, 3 * time.Millisecond},
			{0, 0, 0},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), c.outer)
			begun := time.Now()
			if _, err := r.Decide(ctx, within(c.millis, request("op", "A", 1))); err == nil {
				t.Error("a stopped store decided")
			}
			if waited := time.Since(begun); waited != c.want {
				t.Errorf("deadlineMillis %d, context %s: waited for %s, want %s", c.millis, c.outer, waited, c.want)
			}
			cancel()
		}
	})
}

// Each request of a batch has its own deadline, and the batch ends when none
// is waited for.
func TestEachOfABatchHasItsOwnDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		first, resume := r.occupy(s, "op")
		time.AfterFunc(30*time.Millisecond, resume)
		results := make([]policy.Result, 4)
		begun := time.Now()
		r.DecideBatch(t.Context(), []*policy.Request{
			within(10, request("op", "A", 1)), within(40, request("op", "A", 1)),
			within(20, request("op", "B", 1)), request("op", "B", 1),
		}, results)
		if waited := time.Since(begun); waited != 30*time.Millisecond {
			t.Errorf("the batch took %s, want the 30 ms that its last call took", waited)
		}
		first.is(true, 9)
		for _, i := range []int{0, 2} {
			hasReason(t, results[i].Err, policy.ReasonStoreUnavailable)
			if isUnsure(results[i].Err) {
				t.Errorf("request %d was not sent and is uncertain", i)
			}
		}
		for _, i := range []int{1, 3} {
			if results[i].Err != nil || results[i].Decision.Remaining != 9 {
				t.Errorf("request %d: %+v, want it to be the first charged", i, results[i])
			}
		}
	})
}

func TestABatchWhoseClientIsGoneEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s)
		resume := s.stop()
		ctx, cancel := context.WithCancel(t.Context())
		results := make([]policy.Result, 2)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.DecideBatch(ctx, []*policy.Request{request("op", "A", 1), request("op", "A", 2)}, results)
		}()
		synctest.Wait()
		cancel()
		<-ended
		if !isUnsure(results[0].Err) || results[1].Err == nil || isUnsure(results[1].Err) {
			t.Errorf("got %v and %v, want the first one, which was sent, to be uncertain", results[0].Err, results[1].Err)
		}
		resume()
		synctest.Wait()
		r.ask(request("op", "A", 1)).is(true, 8)
	})
}

// An answer that comes in the instant of the deadline is given or is late, and
// never disturbs the next request.
func TestAnAnswerInTheInstantOfTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 1000, "")
		s.install(t, "kept", 1000, `, "durability": "durable"`) // has a lane of its own
		r := start(t, s)
		given, late := 0, 0
		for range 200 {
			s.breaks(func(sentCall) error {
				<-time.After(timeout)
				return nil
			})
			one := r.ask(request("op", "A", 1))
			results := make([]policy.Result, 3)
			r.DecideBatch(t.Context(), []*policy.Request{request("kept", "B", 1), request("kept", "C", 1)}, results[:2])
			results[2] = <-one.result
			for _, got := range results {
				switch {
				case got.Err == nil && got.Decision.Allowed && got.Decision.Policy != nil:
					given++
				case got.Err != nil:
					if _, ok := errors.AsType[*policy.StoreError](got.Err); !ok {
						t.Fatalf("got %v", got.Err)
					}
					late++
				default:
					t.Fatalf("got an empty decision: %+v", got)
				}
			}
			s.breaks(func(sentCall) error { return nil })
			synctest.Wait()
			if _, err := r.Decide(t.Context(), request("op", "D", 1)); err != nil {
				t.Fatalf("the next request: %v", err)
			}
		}
		t.Logf("%d given, %d late", given, late)
	})
}
