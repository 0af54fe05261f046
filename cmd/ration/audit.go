package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// auditPageRows is how many rows of the audit the service gives at once.
const auditPageRows = 500

func (p *program) auditCommand() *cobra.Command {
	return group(
		&cobra.Command{
			Use:   "audit",
			Short: "List what was done, and check that nobody rewrote it",
			Long:  "Lists the audit through the administration listener of a running service, and checks its chain in the database.",
		},
		p.auditListCommand(), p.auditVerifyCommand(),
	)
}

// auditRow is a row of the audit as the service answers it.
type auditRow struct {
	ID            int64     `json:"id"`
	At            time.Time `json:"at"`
	Actor         string    `json:"actor"`
	Action        string    `json:"action"`
	Policy        string    `json:"policy"`
	VersionBefore int       `json:"versionBefore"`
	VersionAfter  int       `json:"versionAfter"`
	Reason        string    `json:"reason"`
}

// versions says which version of a policy became which.
func (r *auditRow) versions() string {
	switch {
	case r.VersionAfter == 0:
		return ""
	case r.VersionBefore == 0 || r.VersionBefore == r.VersionAfter:
		return fmt.Sprintf("v%d", r.VersionAfter)
	default:
		return fmt.Sprintf("v%d→v%d", r.VersionBefore, r.VersionAfter)
	}
}

func (p *program) auditListCommand() *cobra.Command {
	var of struct {
		policy, actor, action string
		oldest                bool
		rows                  int
	}
	command := p.overAdmin(&cobra.Command{
		Use:     "list",
		Short:   "List what was done, the newest first",
		Long:    "Lists rows of the audit, the newest first. With --output json each has everything: contents before and after, hashes.",
		Example: "  ration audit list --policy search\n  ration audit list --actor ana@example.com --oldest --rows 500 -o json",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, api *adminAPI, _ []string, asJSON bool) error {
		if err := checkRows(of.rows); err != nil {
			return err
		}
		query := url.Values{"limit": {strconv.Itoa(min(of.rows, auditPageRows))}}
		for name, value := range map[string]string{"policy": of.policy, "actor": of.actor, "action": of.action} {
			if value != "" {
				query.Set(name, value)
			}
		}
		if of.oldest {
			query.Set("order", "oldest")
		}
		rows, raw, err := collect[auditRow](ctx, api, "/v1/audit", query, "rows", of.rows)
		if err != nil {
			return err
		}
		if asJSON {
			return p.printAll("rows", raw)
		}
		return p.printAudit(rows)
	})
	flags := command.Flags()
	flags.StringVar(&of.policy, "policy", "", "only about this `policy`")
	flags.StringVar(&of.actor, "actor", "", "only what this `operator` did")
	flags.StringVar(&of.action, "action", "", "only this `action`, such as policy.changed")
	flags.BoolVar(&of.oldest, "oldest", false, "the oldest first")
	flags.IntVar(&of.rows, "rows", rowsDefault, "at most this `number` of rows")
	return command
}

func (p *program) printAudit(rows []auditRow) error {
	table := p.table()
	fmt.Fprintln(table, "ID\tAT (UTC)\tACTOR\tACTION\tPOLICY\tVERSION\tREASON")
	for i := range rows {
		row := &rows[i]
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", row.ID, row.At.UTC().Format(time.DateTime), oneLine(row.Actor), row.Action,
			row.Policy, row.versions(), oneLine(row.Reason))
	}
	return table.Flush()
}
