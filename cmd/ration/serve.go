package main

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"
)

func (p *program) serveCommand() *cobra.Command {
	return reads(&cobra.Command{
		Use:   "serve",
		Short: "Run the service on a migrated database",
		Long: "Runs the service in front of a database that `ration migrate up` has prepared.\n\n" +
			"Callers show who they are: by a token that `ration token create` made, a client certificate, or, operators, by the\n" +
			"bearer token of an OpenID issuer. The log (standard error) says `ready` with the addresses; port 0 takes any free\n" +
			"one. SIGINT and SIGTERM let it finish what it has begun; a second signal ends it at once.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return p.serve(command.Context()) },
	}, databaseConfig{}, serviceConfig{}, authorityConfig{})
}

func (p *program) serve(ctx context.Context) error {
	var database databaseConfig
	var config serviceConfig
	var callers authorityConfig
	var found faults
	p.environment.read(&database, &found)
	p.environment.read(&config, &found)
	p.environment.read(&callers, &found)
	database.check(&found)
	config.check(&found)
	callers.check(&config.Listen, &found)
	if err := found.err(); err != nil {
		return err
	}
	log := p.logger(config.LogLevel)
	s, err := openService(ctx, &config, &callers, database.DatabaseURL, log)
	if err != nil {
		return err
	}
	callers.warn(ctx, &config.Listen, log)
	err = s.run(ctx, config.Listen.bind, func(bound *listeners) {
		log.InfoContext(ctx, "ready", "version", readBuild().version,
			"decisions", bound.decisions.Addr().String(), "admin", bound.admin.Addr().String(), "metrics", bound.metrics.Addr().String())
	})
	if err == nil {
		log.InfoContext(ctx, "stopped")
	}
	return err
}

// logger writes to standard error, which is not what a program is asked for.
func (p *program) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: level}))
}
