package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/migrations"
	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/pgstore/doctor"
)

// doctorConfig is what a look at the database has to know of the service.
type doctorConfig struct {
	Database databaseConfig

	Lanes int `env:"RATION_LANES" envDefault:"0" help:"as the service has it"`
}

// verdict is the exit code of a command that has looked and found something;
// what it is has been printed.
type verdict int

func (v verdict) Error() string { return fmt.Sprintf("exit code %d", int(v)) }

// verdicts are what a report's worst finding comes to. Notes are nothing.
var verdicts = map[doctor.Severity]verdict{doctor.Warning: exitWarnings, doctor.Fault: exitFaults}

func (p *program) doctorCommand() *cobra.Command {
	config := doctor.Config{Migrations: migrations.Latest()}
	command := reads(&cobra.Command{
		Use:   "doctor",
		Short: "Look for what would bite in production, each with its mend",
		Long: "Examines the database RATION_DATABASE_URL for what would bite in production: what holds back vacuum, autovacuum,\n" +
			"storage, commit and standby settings, poolers, the budget of connections, clocks, schema, roles, grants and the audit.\n" +
			"Each finding comes with its mend. It changes nothing. Run it as the owner, or as a role that was granted pg_monitor.\n\n" +
			"Exit codes: 0 nothing but notes, 1 could not look, 2 called or configured wrongly, 4 warnings, 5 faults.",
		Example: "  ration doctor\n  ration doctor --instances 6 -o json",
		Args:    cobra.NoArgs,
	}, doctorConfig{})
	form := outputFlag(command, "text or json")
	command.RunE = func(command *cobra.Command, _ []string) error {
		asJSON, err := form.isJSON()
		if err != nil {
			return err
		}
		if config.Instances < 0 || config.TransactionMax <= 0 {
			return usageError{fmt.Errorf("--instances %d, --transaction-max %s: neither can be so small", config.Instances, config.TransactionMax)}
		}
		return p.doctor(command.Context(), config, asJSON)
	}
	command.Flags().IntVar(&config.Instances, "instances", 0, "the `number` of instances that are to run, if more than do now")
	command.Flags().DurationVar(&config.TransactionMax, "transaction-max", time.Minute, "the `age` from which an open transaction is a finding")
	return command
}

func (p *program) doctor(ctx context.Context, config doctor.Config, asJSON bool) error {
	var of doctorConfig
	var found faults
	p.environment.read(&of, &found)
	of.Database.check(&found)
	if err := found.err(); err != nil {
		return err
	}
	lanes := (&serviceConfig{Lanes: of.Lanes}).lanes()
	config.URL, config.Connections = of.Database.DatabaseURL, limiter.Sessions(lanes)+pgstore.ConnectionsMax()
	report, err := doctor.Examine(ctx, config)
	if err != nil {
		return err
	}
	if asJSON {
		err = json.NewEncoder(p.out).Encode(report)
	} else {
		err = p.sayFindings(report)
	}
	if code, bad := verdicts[report.Worst()]; err == nil && bad {
		return code
	}
	return err
}

// broken breaks a text into lines of a terminal.
func broken(text string) string {
	const width = 80
	var lines strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+len(" ")+len(word) > width:
			lines.WriteString("\n  ")
			column = len("  ")
		default:
			lines.WriteByte(' ')
			column++
		}
		lines.WriteString(word)
		column += len(word)
	}
	return lines.String()
}

// sayFindings prints a report for people: a line for each finding and one for
// its mend, then what was looked at.
func (p *program) sayFindings(report *doctor.Report) error {
	table := p.table()
	for _, f := range report.Findings {
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.Severity, f.Check, oneLine(f.Found))
		if f.Mend != "" {
			fmt.Fprintf(table, "\tmend\t%s\n", oneLine(f.Mend))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	found := "nothing"
	if n := len(report.Findings); n > 0 {
		found = strconv.Itoa(n)
	}
	_, err := fmt.Fprintln(p.out, broken(found+" found. Looked at: "+strings.Join(report.Checks, ", ")))
	return err
}
