package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func (p *program) policyCommand() *cobra.Command {
	return group(
		&cobra.Command{
			Use:   "policy",
			Short: "Check, try, change and watch policies",
			Long:  "Checks policies in files, and tries, changes and watches them through the administration listener of a running service.",
		},
		p.policyListCommand(), p.policyGetCommand(), p.policyPutCommand(), p.policyDiffCommand(), p.policyApplyCommand(),
		p.policyLintCommand(), p.policyHistoryCommand(), p.policyRollbackCommand(), p.policyDeleteCommand(), p.policyInstallationsCommand(),
		p.policyShadowReportCommand(), p.policyExplainCommand(),
	)
}

// overAdmin makes a command of what is done through the administration
// listener. It adds the choice between text for people and JSON for programs.
func (p *program) overAdmin(
	command *cobra.Command, do func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error,
) *cobra.Command {
	form := outputFlag(command, "text, or json as the service answered it")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		asJSON, err := form.isJSON()
		if err != nil {
			return err
		}
		api, err := p.adminAPI()
		if err != nil {
			return err
		}
		return do(command.Context(), api, arguments, asJSON)
	}
	return reads(command, adminConfig{})
}

func (p *program) policyListCommand() *cobra.Command {
	return p.overAdmin(&cobra.Command{
		Use:   "list",
		Short: "List the policies in force",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, api *adminAPI, _ []string, asJSON bool) error {
		policies, raw, err := api.list(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			return p.printAll("policies", raw)
		}
		return p.printTable(policies)
	})
}

// printTable prints policies a line each.
func (p *program) printTable(policies []policyVersion) error {
	table := p.table()
	fmt.Fprintln(table, "ID\tVERSION\tLIMIT\tPER\tMODE")
	for i := range policies {
		one := &policies[i]
		fmt.Fprintf(table, "%s\tv%d\t%s\t%s\t%s\n", one.ID, one.Version, &one.Limit, cmp.Or(strings.Join(one.Per, ","), "(all)"), one.mode())
	}
	return table.Flush()
}

func (p *program) policyGetCommand() *cobra.Command {
	return p.overAdmin(&cobra.Command{
		Use:   "get ID",
		Short: "Print a policy, ready to be edited and put back",
		Long: "Prints the policy in force as the JSON that `policy put` takes. Its version is told on standard error, so that\n" +
			"standard output can be kept in a file.",
		Example: "  ration policy get search >search.json\n  ration policy put search search.json --if-match v1",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		found, err := api.get(ctx, arguments[0])
		if err != nil {
			return err
		}
		if asJSON {
			return p.printRaw(found.raw)
		}
		content, err := editObject(found.raw, notPutMembers)
		if err != nil {
			return fmt.Errorf("read the service's answer: %w", err)
		}
		fmt.Fprintf(p.err, "%s v%d, installed %s\n", found.ID, found.Version, found.InstalledAt.UTC().Format(time.DateTime+" MST"))
		_, err = p.out.Write(content)
		return err
	})
}
