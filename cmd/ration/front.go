package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

// localActor is who the audit says made a change where nobody is asked:
// whoever can reach this machine's loopback.
const localActor = "loopback"

// front is the instance's face: three servers and whether it wants requests.
type front struct {
	decisions, admin, metrics *http.Server

	stopping chan struct{} // closed when no further request is wanted
}

func newFront(s *service, site httpapi.Site, reset httpapi.ResetHeader, gatherer prometheus.Gatherer) *front {
	f := &front{stopping: make(chan struct{})}
	server := func(handler http.Handler) *http.Server {
		server := httpapi.NewServer(handler)
		server.ErrorLog = slog.NewLogLogger(s.log.Handler(), slog.LevelDebug) // callers' broken connections
		return server
	}
	var callers httpapi.Authenticator
	var secured *tls.Config
	if s.callers != nil {
		callers = s.callers
		if s.callers.Certificates != nil {
			secured = s.callers.Certificates.Config()
		}
	}
	f.decisions = server(httpapi.NewDecisions(httpapi.DecisionsConfig{
		Site: site, Decider: s.limiter, Operations: s.store, Gateways: callers, ResetHeader: reset,
	}))
	policies := newPromptPolicies(s)
	f.admin = server(httpapi.NewAdmin(httpapi.AdminConfig{
		Site: site, Policies: policies, Overrides: policies, KillSwitches: policies, Keys: s.store, Audit: s.store,
		Installations: s.store, Stores: s.store, Shadows: policies, Explainer: s.limiter, Stopping: f.stopping, Operators: callers, Actor: localActor,
	}))
	f.decisions.TLSConfig, f.admin.TLSConfig = secured, secured.Clone()
	f.metrics = server(httpapi.NewObservability(httpapi.ObservabilityConfig{Site: site, Gatherer: gatherer, Checks: f.checks(s)}))
	return f
}

// checks are the conditions of readiness.
func (f *front) checks(s *service) []httpapi.Check {
	notReady := func(detail string) error {
		return &policy.Error{Code: policy.CodeUnavailable, Reason: policy.ReasonStoreUnavailable, Detail: detail}
	}
	return []httpapi.Check{
		{Name: "accepting", Probe: func(context.Context) error {
			select {
			case <-f.stopping:
				return notReady("This instance is stopping.")
			default:
				return nil
			}
		}},
		{Name: "policies", Probe: func(context.Context) error {
			if !s.limiter.Loaded() {
				return notReady("No policies are loaded yet.")
			}
			return nil
		}},
		{Name: "schema", Probe: func(ctx context.Context) error {
			err := s.store.CheckSchema(ctx)
			if known, ok := errors.AsType[*policy.Error](err); ok && known.Code == policy.CodeUnavailable {
				return nil // it fitted when it was last seen; that the store is away is the next check's to say
			}
			return err
		}},
		{Name: "store", Probe: s.store.Ping, WarnOnly: true},
	}
}

// serve binds the listeners and serves them until drain has ended it, or until
// one fails.
func (f *front) serve(ctx context.Context, bind func(context.Context) (*listeners, error), ready func(*listeners)) error {
	bound, err := bind(ctx)
	if err != nil {
		return err
	}
	ended := make(chan error)
	serve := func(name string, server *http.Server, listener net.Listener) {
		go func() {
			var err error
			if server.TLSConfig != nil {
				err = server.ServeTLS(listener, "", "") // the configuration has the certificate
			} else {
				err = server.Serve(listener)
			}
			if errors.Is(err, http.ErrServerClosed) {
				ended <- nil
				return
			}
			ended <- fmt.Errorf("serve %s: %w", name, err)
		}()
	}
	serve("decisions", f.decisions, bound.decisions)
	serve("administration", f.admin, bound.admin)
	serve("metrics", f.metrics, bound.metrics)
	ready(bound)
	var failures []error
	for range 3 {
		if err := <-ended; err != nil {
			failures = append(failures, err)
			f.close()
		}
	}
	return errors.Join(failures...)
}

// drain says not ready, answers what was asked, and closes; health is told to
// the last.
func (f *front) drain(ctx context.Context) error {
	close(f.stopping)
	err := errors.Join(f.admin.Shutdown(ctx), f.decisions.Shutdown(ctx), f.metrics.Shutdown(ctx))
	f.close() // whoever has not ended by now is cut off
	return err
}

func (f *front) close() {
	for _, server := range []*http.Server{f.decisions, f.admin, f.metrics} {
		_ = server.Close() // the listeners may be closed already
	}
}
