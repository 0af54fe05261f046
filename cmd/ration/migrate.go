package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rationhq/ration/migrations"
)

func (p *program) migrateCommand() *cobra.Command {
	return group(
		&cobra.Command{
			Use:   "migrate",
			Short: "Move the database's schema along its history",
			Long: "Moves the schema of the database RATION_DATABASE_URL along its history. The role has to own the schema, or be able\n" +
				"to create it and roles; the connection has to be a direct one, not through a transaction pooler.",
		},
		p.migrateUpCommand(), p.migrateDownCommand(), p.migrateVersionCommand(), p.migrateForceCommand(),
	)
}

func (p *program) migrateUpCommand() *cobra.Command {
	return p.migration("up", "Apply every migration that is missing",
		"Applies every migration that is missing; having none to apply is success. It may be started in any number of places\n"+
			"at once: one migrates, the others wait for it. Each migration is one transaction.",
		migrations.Up)
}

func (p *program) migrateDownCommand() *cobra.Command {
	return p.migration("down", "Take back the newest migration, with the data only it had room for",
		"Takes back the newest migration, and with it the data that only it had room for. To take back more, call it again.",
		migrations.DownOne)
}

func (p *program) migrateVersionCommand() *cobra.Command {
	return p.migration("version", "Print where the database stands",
		"Prints where the database stands. It takes no lock and writes nothing. A schema in doubt (a migration broke off) is\n"+
			"explained, and makes it exit 1.",
		func(context.Context, string) error { return nil })
}

// migration is a command that does its work on the database and then prints
// where that stands.
func (p *program) migration(name, short, long string, work func(ctx context.Context, url string) error) *cobra.Command {
	return reads(&cobra.Command{
		Use: name, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return p.migrate(command.Context(), work) },
	}, databaseConfig{})
}

func (p *program) migrateForceCommand() *cobra.Command {
	return reads(&cobra.Command{
		Use:   "force VERSION",
		Short: "Record a version without running anything",
		Long: "Records that the schema is at VERSION and in no doubt, without running anything: your word that you have looked.\n\n" +
			"It is for one case. A migration broke off (connection lost, process killed), so `ration migrate version` says that\n" +
			"the schema is in doubt. A migration is one transaction: it has happened whole or not at all. Look which\n" +
			"(`\\d ration.*` in psql), and give the version whose schema you see: that of the migration if its changes are\n" +
			"there, else the one before. Then `ration migrate up` goes on from there. A wrong number makes later migrations fail.",
		Example: "  ration migrate force 2",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			version, err := strconv.ParseUint(arguments[0], 10, 31)
			if err != nil {
				return usageError{fmt.Errorf("%q is not a version: it is a whole number from 0 to %d", arguments[0], migrations.Latest())}
			}
			return p.migrate(command.Context(), func(ctx context.Context, url string) error {
				return migrations.Force(ctx, url, uint(version))
			})
		},
	}, databaseConfig{})
}

func (p *program) migrate(ctx context.Context, work func(ctx context.Context, url string) error) error {
	database, err := p.databaseURL()
	if err != nil {
		return err
	}
	if err := work(ctx, database); err != nil {
		return err
	}
	status, err := migrations.Version(ctx, database)
	if err != nil {
		return err
	}
	if status.Dirty {
		return &migrations.DirtyError{Version: status.Version}
	}
	fmt.Fprintf(p.out, "schema version %d of %d\n", status.Version, status.Latest)
	return nil
}
