package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/rationhq/ration/internal/devpg"
	"github.com/rationhq/ration/migrations"
)

// devDatabase is the database on a private server.
const devDatabase = "ration"

// serviceRole is what the service connects as where we may choose: it runs the
// stored functions and can write to no table.
const serviceRole = "ration_service"

// postgresStopMax bounds the last checkpoint of a private server: its shared
// buffers, on a slow disk.
const postgresStopMax = time.Minute

// errPostgresEnded is why everything ends when the private server does.
var errPostgresEnded = errors.New("the private PostgreSQL ended by itself")

// devConfig is what `ration dev` reads besides the service's own.
type devConfig struct {
	DatabaseURL string `env:"RATION_DATABASE_URL" help:"a server of yours, in place of a private one"`
	Dir         string `env:"RATION_DEV_DIR"      help:"the private server's folder (one in your cache; root's is /var/lib/ration-dev)"`
	BinDir      string `env:"RATION_PG_BIN"       help:"the folder of PostgreSQL's programs (looked for)"`
	Service     serviceConfig
}

func (p *program) devCommand() *cobra.Command {
	return reads(&cobra.Command{
		Use:   "dev",
		Short: "Start everything: a private PostgreSQL, the schema, example policies, the service",
		Long: "Starts a private PostgreSQL, migrates it, installs example policies, and runs the service in front of it, on\n" +
			"loopback, open to whoever can reach that. Prints `ready` with the addresses and two commands to try.\n\n" +
			"PostgreSQL is the first of: RATION_DATABASE_URL, used as it is; binaries on this machine (it need not be running);\n" +
			"a running Docker engine; a download. Its data stays in RATION_DEV_DIR, where the next start goes on with it.\n" +
			"Ctrl-C stops everything that was started; a second one waits for no answers, a third for nothing.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return p.dev(command.Context()) },
	}, devConfig{})
}

// dev runs until ctx ends, which is no error at whatever point.
func (p *program) dev(ctx context.Context) error {
	var config devConfig
	var found faults
	p.environment.read(&config, &found)
	p.environment.read(&config.Service, &found)
	if config.DatabaseURL != "" {
		found.checkDatabase("RATION_DATABASE_URL", config.DatabaseURL)
	}
	config.Service.check(&found)
	config.Service.Listen.checkLoopback("`ration dev` lets in whoever reaches it", &found)
	if err := found.err(); err != nil {
		return err
	}
	if p.environment["RATION_LOG_LEVEL"] == "" {
		config.Service.LogLevel = slog.LevelWarn // what went well is said by one line: ready
	}
	// Bound first: an address in use is better told now than after PostgreSQL's start.
	bound, err := config.Service.Listen.bind(ctx)
	if err != nil {
		return err
	}
	defer bound.close()
	if config.DatabaseURL != "" {
		err = p.serveDev(ctx, &config.Service, bound, devStore{owner: config.DatabaseURL, service: config.DatabaseURL})
	} else {
		err = p.devOnPrivate(ctx, &config, bound)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // asked to end while it was starting
	}
	return err
}

// devOnPrivate starts PostgreSQL, serves in front of it, and stops it.
func (p *program) devOnPrivate(ctx context.Context, config *devConfig, bound *listeners) (err error) {
	if config.Dir == "" {
		if config.Dir, err = devpg.DefaultDir(); err != nil {
			return err
		}
	}
	hurried, release := secondSignal()
	defer release()
	fmt.Fprintf(p.err, "starting PostgreSQL in %s\n", config.Dir)
	server, err := devpg.Start(ctx, devpg.Config{Dir: config.Dir, BinDir: config.BinDir})
	if _, inUse := errors.AsType[*devpg.InUseError](err); inUse {
		return fmt.Errorf("RATION_DEV_DIR: %w", err)
	}
	if err != nil {
		return err
	}
	serving, end := context.WithCancelCause(ctx)
	go func() {
		<-server.Done()
		end(errPostgresEnded)
	}()
	defer func() {
		if context.Cause(serving) == errPostgresEnded { //nolint:errorlint // this very cause, given above
			err = errors.Join(err, errPostgresEnded)
		}
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), postgresStopMax)
		defer cancel()
		err = errors.Join(err, server.Stop(stopping))
	}()
	if err := server.EnsureDatabase(serving, devDatabase); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() {
		served <- p.serveDev(serving, &config.Service, bound, devStore{
			owner:   server.URL(devDatabase, devpg.Superuser),
			service: server.URL(devDatabase, serviceRole),
			admit:   func(ctx context.Context) error { return server.Admit(ctx, serviceRole) },
		})
	}()
	select {
	case err := <-served:
		return err
	case <-hurried: // the service ends with the process, PostgreSQL in order
		return errHurried
	}
}

// devStore is a database to develop on.
type devStore struct {
	owner   string                      // URL for the schema's owner
	service string                      // URL for the service
	admit   func(context.Context) error // lets the service in once the schema has made its role; nil where it is in
}

// serveDev prepares the database and serves in front of it until ctx ends.
func (p *program) serveDev(ctx context.Context, config *serviceConfig, bound *listeners, database devStore) error {
	if err := migrations.Up(ctx, database.owner); err != nil {
		return err
	}
	if database.admit != nil {
		if err := database.admit(ctx); err != nil {
			return err
		}
	}
	s, err := openService(ctx, config, &authorityConfig{Open: true}, database.service, p.logger(config.LogLevel))
	if err != nil {
		return err
	}
	if err := installExamples(ctx, s.store); err != nil {
		s.store.Close()
		return err
	}
	already := func(context.Context) (*listeners, error) { return bound, nil }
	return s.run(ctx, already, func(bound *listeners) { p.sayReady(bound, database.owner) })
}

// sayReady tells a person what runs where, and what to try.
func (p *program) sayReady(bound *listeners, database string) {
	decisions := "http://" + bound.decisions.Addr().String()
	fmt.Fprintf(p.out, "ready: decisions %s, administration http://%s, metrics http://%s (open to this machine, no tokens)\n\n",
		decisions, bound.admin.Addr(), bound.metrics.Addr())
	const ask = `%s/internal/rate-decisions -H 'Content-Type: application/json' -d '{"verifiedAccount":"%s","operation":"report.create"}'`
	fmt.Fprintf(p.out, "One call is allowed:\n  curl -i "+ask+"\n\n", decisions, "A")
	fmt.Fprintf(p.out, "Of nine at once, the ninth is denied:\n  (for i in 1 2 3 4 5 6 7 8 9; do curl -s "+ask+" & done; wait)\n\n", decisions, "B")
	fmt.Fprintf(p.out, "The balances:\n  psql '%s' -c 'TABLE ration.bucket_now'\n\nCtrl-C stops all of it.\n", database)
}
