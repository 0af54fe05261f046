package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
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
		versions, err := api.versions(ctx, policyPath(arguments[0])+"/versions?limit=1000", "versions")
		if err != nil {
			return err
		}
		if asJSON {
			all := make([]json.RawMessage, len(versions))
			for i := range versions {
				all[i] = versions[i].raw
			}
			return json.NewEncoder(p.out).Encode(map[string]any{"versions": all})
		}
		table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "VERSION\tINSTALLED (UTC)\tALGORITHM\tLIMIT\tMODE")
		for i := range versions {
			one := &versions[i]
			mode := one.Mode
			if one.Deleted {
				mode = "deleted"
			}
			fmt.Fprintf(table, "v%d\t%s\t%s\t%s\t%s\n", one.Version, one.InstalledAt.UTC().Format(time.DateTime), one.Limit.Algorithm, one.Limit, mode)
		}
		return table.Flush()
	})
}
