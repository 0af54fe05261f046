package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// addresses are where the three listeners listen.
type addresses struct {
	Decisions string `env:"RATION_HTTP_ADDR"    envDefault:"127.0.0.1:8080" help:"decisions"`
	Admin     string `env:"RATION_ADMIN_ADDR"   envDefault:"127.0.0.1:8081" help:"administration"`
	Metrics   string `env:"RATION_METRICS_ADDR" envDefault:"127.0.0.1:9090" help:"metrics and health"`
}

// check notes what is no address.
func (a *addresses) check(found *faults) { a.each(found.checkAddress) }

// checkLoopback notes each address that others than this machine could reach,
// and why they must not.
func (a *addresses) checkLoopback(because string, found *faults) {
	a.each(func(variable, address string) { found.checkLoopback(variable, address, because) })
}

func (a *addresses) each(do func(variable, address string)) {
	do("RATION_HTTP_ADDR", a.Decisions)
	do("RATION_ADMIN_ADDR", a.Admin)
	do("RATION_METRICS_ADDR", a.Metrics)
}

// listeners are the three, bound. Their addresses are the real ones where a
// port 0 was asked for.
type listeners struct {
	decisions, admin, metrics net.Listener
}

// bind binds all three or none, and names every variable that is in the way.
func (a *addresses) bind(ctx context.Context) (*listeners, error) {
	l := new(listeners)
	err := errors.Join(
		bindOne(ctx, &l.decisions, "RATION_HTTP_ADDR", a.Decisions),
		bindOne(ctx, &l.admin, "RATION_ADMIN_ADDR", a.Admin),
		bindOne(ctx, &l.metrics, "RATION_METRICS_ADDR", a.Metrics),
	)
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func bindOne(ctx context.Context, into *net.Listener, variable, address string) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: another process listens on %s; set %[1]s to an address that is free (port 0 takes any)", variable, address)
	case err != nil:
		return fmt.Errorf("%s: listen on %s: %w", variable, address, err)
	}
	*into = listener
	return nil
}

// close lets go of those that nobody serves.
func (l *listeners) close() {
	for _, listener := range []net.Listener{l.decisions, l.admin, l.metrics} {
		if listener != nil {
			_ = listener.Close() // closed by its server already, or never used
		}
	}
}
