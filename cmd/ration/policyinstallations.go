package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

func (p *program) policyInstallationsCommand() *cobra.Command {
	return p.overAdmin(&cobra.Command{
		Use:   "installations ID",
		Short: "List in which instances a policy's version is in force",
		Long:  "Lists the instances of the service, and whether each has confirmed the policy's version in force. Lost ones are listed\nfor ten minutes.",
		Args:  cobra.ExactArgs(1),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		var of struct {
			Policy    string `json:"policy"`
			Version   int    `json:"version"`
			Instances []struct {
				Instance  string    `json:"instance"`
				Name      string    `json:"name"`
				Program   string    `json:"program"`
				State     string    `json:"state"`
				Installed bool      `json:"installed"`
				SeenAt    time.Time `json:"seenAt"`
			} `json:"instances"`
		}
		raw, err := api.read(ctx, http.MethodGet, policyPath(arguments[0])+"/installations", nil, nil, &of)
		if err != nil {
			return err
		}
		if asJSON {
			return p.printRaw(raw)
		}
		fmt.Fprintf(p.out, "%s v%d\n", of.Policy, of.Version)
		table := p.table()
		fmt.Fprintln(table, "NAME\tINSTANCE\tPROGRAM\tSTATE\tIN FORCE\tSEEN (UTC)")
		for _, one := range of.Instances {
			inForce := "no"
			if one.Installed {
				inForce = "yes"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", oneLine(one.Name), one.Instance, oneLine(one.Program), one.State, inForce, one.SeenAt.UTC().Format(time.DateTime))
		}
		return table.Flush()
	})
}
