package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func (p *program) policyHistoryCommand() *cobra.Command {
	return p.overAdmin(&cobra.Command{
		Use:     "history ID",
		Short:   "List all versions of a policy, the oldest first",
		Long:    "Lists all versions of a policy, the oldest first, a deleted one's too. Who made each, and why, is in the audit.",
		Example: "  ration policy history search\n  ration audit list --policy search",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		versions, raw, err := collect[policyVersion](ctx, api, policyPath(arguments[0])+"/versions", nil, "versions", allRows)
		if err != nil {
			return err
		}
		if asJSON {
			return p.printAll("versions", raw)
		}
		table := p.table()
		fmt.Fprintln(table, "VERSION\tINSTALLED (UTC)\tLIMIT\tMODE")
		for i := range versions {
			one := &versions[i]
			fmt.Fprintf(table, "v%d\t%s\t%s\t%s\n", one.Version, one.InstalledAt.UTC().Format(time.DateTime), &one.Limit, one.mode())
		}
		return table.Flush()
	})
}
