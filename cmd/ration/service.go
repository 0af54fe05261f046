package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/internal/authority"
	"github.com/rationhq/ration/internal/lifecycle"
	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/pgstore"
)

// How long each part may take to end. Together they stay below the 30 s after
// which orchestrators commonly kill.
const (
	drainMax     = 10 * time.Second // the slowest answer there is, and a margin
	lanesStopMax = 5 * time.Second  // what waits in the lanes, a few calls of the store
	upkeepMax    = 2 * time.Second  // connections that are closed in order
)

// What each package needs from another is what that other one has.
var (
	_ limiter.Session    = (*pgstore.Session)(nil)
	_ limiter.Policies   = (*pgstore.Store)(nil)
	_ httpapi.Policies   = (*promptPolicies)(nil)
	_ httpapi.Decider    = (*limiter.Limiter)(nil)
	_ httpapi.Operations = (*pgstore.Store)(nil)

	_ authority.TokenStore  = (*pgstore.Store)(nil)
	_ httpapi.Authenticator = (*authority.Authority)(nil)
)

// service is one instance: a store, what decides on it, and the listeners in
// front.
type service struct {
	log     *slog.Logger
	store   *pgstore.Store
	limiter *limiter.Limiter
	callers *authority.Authority // nil: nobody is asked who they are
	beats   *heartbeat
	front   *front

	sessions []*pgstore.Session // the lanes' own once they run
}

// openService connects to the store, checks its schema and puts an instance
// together that listens nowhere yet.
func openService(
	ctx context.Context, config *serviceConfig, callers *authorityConfig, databaseURL string, log *slog.Logger,
) (_ *service, err error) {
	s := &service{log: log}
	if s.store, err = pgstore.Open(ctx, pgstore.Config{URL: databaseURL, CallTimeout: config.CallTimeout}); err != nil {
		return nil, err
	}
	if s.callers, err = callers.authority(s.store, log); err != nil {
		s.store.Close()
		return nil, err
	}
	if err = s.assemble(config, prometheus.NewRegistry()); err != nil {
		s.store.Close()
		return nil, fmt.Errorf("put the service together: %w", err)
	}
	return s, nil
}

func (s *service) assemble(config *serviceConfig, registry *prometheus.Registry) error {
	decisionMetrics, limiterErr := limiter.NewMetrics(registry)
	httpMetrics, httpErr := httpapi.NewMetrics(registry)
	err := errors.Join(limiterErr, httpErr, registerProcess(registry, s.store))
	if err != nil {
		return err
	}
	if s.beats, err = newHeartbeat(s.store, config.InstanceName, s.log, registry); err != nil {
		return err
	}
	s.limiter, err = limiter.New(limiter.Config{
		NewSession:         s.newSession,
		Policies:           s.store,
		InForce:            s.beats.inForce,
		Reports:            s.store,
		Lanes:              config.lanes(),
		QueueMax:           config.QueueMax,
		BatchAsksMax:       config.BatchMax,
		DecisionTimeout:    config.DecisionTimeout,
		OperationRetention: config.Retention,
		Logger:             s.log,
		Metrics:            decisionMetrics,
	})
	if err != nil {
		return err
	}
	site := httpapi.Site{ProblemBase: config.ProblemBase, Jitter: config.Jitter, Logger: s.log, Metrics: httpMetrics}
	s.front = newFront(s, site, config.ResetHeader, registry)
	return nil
}

// run works until ctx ends or a part fails: it loads the policies, listens,
// and says so by ready. It ends in the opposite order: not ready, answers
// given, lanes empty, connections closed.
func (s *service) run(ctx context.Context, bind func(context.Context) (*listeners, error), ready func(*listeners)) error {
	defer s.store.Close()
	s.connectLanes(ctx)
	parts := append(authorityParts(s.callers),
		lifecycle.Part{Name: "decisions", Run: s.limiter.Run, StopMax: lanesStopMax},
		lifecycle.Part{Name: "policy changes", StopMax: upkeepMax, Run: func(ctx context.Context) error {
			return s.store.Listen(ctx, s.log, s.limiter.Refresh, s.refreshCallers)
		}},
		lifecycle.Part{Name: "cleaner", StopMax: upkeepMax, Run: func(ctx context.Context) error {
			return s.store.RunCleaner(ctx, s.log)
		}},
		lifecycle.Part{Name: "sweeper", StopMax: upkeepMax, Run: func(ctx context.Context) error {
			return s.store.RunSweeper(ctx, s.log)
		}},
		lifecycle.Part{Name: "heartbeat", StopMax: upkeepMax, Run: s.beats.run},
		lifecycle.Part{Name: "expiry", StopMax: upkeepMax, Run: func(ctx context.Context) error {
			return s.store.RunExpiry(ctx, s.log)
		}},
		lifecycle.Part{Name: "listeners", StopMax: drainMax, Stop: s.front.drain, Run: func(ctx context.Context) error {
			if err := s.awaitLoaded(ctx); err != nil {
				return err
			}
			return s.front.serve(ctx, bind, ready)
		}},
	)
	return lifecycle.Run(ctx, parts...)
}

// awaitLoaded waits for what no request can be answered without.
func (s *service) awaitLoaded(ctx context.Context) error {
	if s.callers != nil {
		if err := s.callers.Tokens.AwaitLoaded(ctx); err != nil {
			return err
		}
	}
	return s.limiter.AwaitLoaded(ctx)
}

// refreshCallers has the tokens read again.
func (s *service) refreshCallers() {
	if s.callers != nil {
		s.callers.Tokens.Refresh()
	}
}

func (s *service) newSession() limiter.Session {
	session := s.store.NewSession()
	s.sessions = append(s.sessions, session)
	return session
}

// connectLanes connects every lane before anybody waits for an answer: making
// a connection takes longer than a decision may. One that fails tries again
// with its first batch.
func (s *service) connectLanes(ctx context.Context) {
	var connecting sync.WaitGroup
	for _, session := range s.sessions {
		connecting.Go(func() {
			if err := session.Connect(ctx); err != nil {
				s.log.WarnContext(ctx, "a lane is not connected yet", "error", err)
			}
		})
	}
	connecting.Wait()
}
