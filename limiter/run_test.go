package limiter_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/policy"
)

// Who was let in gets his decision; who comes later gets none.
func TestRunEndsWhenWhatWaitsIsDecided(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		r := start(t, s, func(c *limiter.Config) { c.BatchAsksMax = 2 })
		first, resume := r.occupy(s, "op")
		var waiting []*pending
		for i := range 7 {
			waiting = append(waiting, r.ask(request("op", fmt.Sprint("account", i), 1)))
		}
		synctest.Wait()
		stopped := make(chan struct{})
		go func() {
			r.stop()
			close(stopped)
		}()
		synctest.Wait()
		select {
		case <-stopped:
			t.Fatal("it ended while calls wait")
		default:
		}
		late := r.ask(request("op", "A", 1))
		late.fails(policy.ReasonOverloaded)
		resume()
		<-stopped
		first.is(true, 9)
		for _, p := range waiting {
			p.is(true, 9)
		}
		s.calls()
		r.ask(request("op", "A", 1)).fails(policy.ReasonOverloaded)
		if sent := s.calls(); len(sent) != 0 {
			t.Errorf("it went on to the store: %+v", sent)
		}
		if s.open != 0 {
			t.Errorf("%d sessions are open", s.open)
		}
	})
}

func TestAConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	metrics, err := limiter.NewMetrics(prometheus.NewPedanticRegistry())
	if err != nil {
		t.Fatal(err)
	}
	s := newStore()
	good := limiter.Config{
		NewSession: s.newSession, Policies: s, InForce: func(int64, []int64) {}, Reports: s, Lanes: 1, QueueMax: 1, BatchAsksMax: 1024,
		DecisionTimeout: timeout, OperationRetention: retention, Logger: slog.New(slog.DiscardHandler), Metrics: metrics,
	}
	if _, err := limiter.New(good); err != nil {
		t.Errorf("the good one: %v", err)
	}
	for name, spoil := range map[string]func(*limiter.Config){
		"no sessions":    func(c *limiter.Config) { c.NewSession = nil },
		"no policies":    func(c *limiter.Config) { c.Policies = nil },
		"nobody to tell": func(c *limiter.Config) { c.InForce = nil },
		"no reports":     func(c *limiter.Config) { c.Reports = nil },
		"no logger":      func(c *limiter.Config) { c.Logger = nil },
		"no metrics":     func(c *limiter.Config) { c.Metrics = nil },
		"no lanes":       func(c *limiter.Config) { c.Lanes = 0 },
		"no queue":       func(c *limiter.Config) { c.QueueMax = 0 },
		"no time":        func(c *limiter.Config) { c.DecisionTimeout = 0 },
		"no retention":   func(c *limiter.Config) { c.OperationRetention = 0 },
		"no batch":       func(c *limiter.Config) { c.BatchAsksMax = 0 },
		"a large batch":  func(c *limiter.Config) { c.BatchAsksMax = 1025 },
	} {
		spoilt := good
		spoil(&spoilt)
		if _, err := limiter.New(spoilt); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAnEmptyBatchIsAnswered(t *testing.T) {
	t.Parallel()
	s := newStore()
	start(t, s).DecideBatch(context.Background(), nil, nil)
}
