package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rationhq/ration/policy"
)

// beatsSeen is a store that notes what an instance tells it.
type beatsSeen struct {
	mu    sync.Mutex
	fault error
	tries int
	seen  []int64 // generations
	left  bool
}

func (s *beatsSeen) Confirm(_ context.Context, instance *policy.Instance) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	if s.fault != nil {
		return s.fault
	}
	s.seen = append(s.seen, instance.Generation)
	instance.SeenAtMicros = time.Now().UnixMicro()
	return nil
}

func (s *beatsSeen) Leave(context.Context, policy.InstanceID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
	return nil
}

func (s *beatsSeen) fails(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = err
}

// taken gives what was told since the last time, and how often it was tried.
func (s *beatsSeen) taken() (seen []int64, tries int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, tries, s.seen, s.tries = s.seen, s.tries, nil, 0
	return seen, tries
}

func TestAnInstanceTellsThatItLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, registry := new(beatsSeen), prometheus.NewRegistry()
		h, err := newHeartbeat(store, "", slog.New(slog.DiscardHandler), registry)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.run(ctx) }()
		tells := func(what string, tries int, want ...int64) {
			t.Helper()
			synctest.Wait()
			seen, tried := store.taken()
			if tried != tries || len(seen) != len(want) || len(want) > 0 && (seen[0] != want[0] || seen[len(seen)-1] != want[len(want)-1]) {
				t.Errorf("%s: it told %v in %d tries, want %v in %d", what, seen, tried, want, tries)
			}
		}
		<-time.After(3 * time.Second)
		tells("before there are policies", 0)
		h.inForce(7, nil)
		tells("at once", 1, 7)
		<-time.After(3*time.Second + time.Millisecond)
		tells("every second", 3, 7, 7, 7)

		store.fails(errors.New("away"))
		<-time.After(10 * time.Second)
		tells("while the store is away", 10)
		h.inForce(8, []int64{time.Now().Add(-20 * time.Millisecond).UnixMicro()})
		tells("at once, in vain", 1)
		store.fails(nil)
		<-time.After(time.Second)
		tells("when the store is back", 1, 8)
		if count, sum := observed(t, registry); count != 1 || sum < 0.0199 || sum > 0.0201 {
			t.Errorf("%d versions came in %v s: the time until the store was told does not count", count, sum)
		}
		stop()
		if err := <-ended; err != nil || !store.left {
			t.Errorf("%v, left: %t", err, store.left)
		}
	})
}

// observed gives the count and the sum of the registry's histogram.
func observed(t *testing.T, registry prometheus.Gatherer) (count uint64, sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	histogram := families[0].GetMetric()[0].GetHistogram()
	return histogram.GetSampleCount(), histogram.GetSampleSum()
}
