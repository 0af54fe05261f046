package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

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

// printForm is the form of what a command prints.
type printForm string

// outputFlag adds the choice of it to a command.
func outputFlag(command *cobra.Command, forms string) *printForm {
	form := command.Flags().StringP("output", "o", "text", "`form` of what is printed: "+forms)
	return (*printForm)(form)
}

// isJSON says whether programs read it.
func (o *printForm) isJSON() (bool, error) {
	if *o != "text" && *o != "json" {
		return false, usageError{fmt.Errorf("--output %q: it is text or json", *o)}
	}
	return *o == "json", nil
}

func (p *program) policyListCommand() *cobra.Command {
	return p.overAdmin(&cobra.Command{
		Use:   "list",
		Short: "List the policies in force",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, api *adminAPI, _ []string, asJSON bool) error {
		policies, err := api.list(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			return p.printList(policies)
		}
		return p.printTable(policies)
	})
}

// printJSON prints a policy as the service answered it.
func (p *program) printJSON(version *policyVersion) error {
	_, err := fmt.Fprintf(p.out, "%s\n", version.raw)
	return err
}

// printList prints all pages of policies as one, in the form of a page.
func (p *program) printList(policies []policyVersion) error {
	all := make([]json.RawMessage, len(policies)) // none is [], not null
	for i := range policies {
		all[i] = policies[i].raw
	}
	return json.NewEncoder(p.out).Encode(map[string]any{"policies": all})
}

// printTable prints policies a line each.
func (p *program) printTable(policies []policyVersion) error {
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tVERSION\tALGORITHM\tLIMIT\tPER\tMODE\tDURABILITY\tINSTALLED (UTC)")
	for _, one := range policies {
		fmt.Fprintf(table, "%s\tv%d\t%s\t%s\t%s\t%s\t%s\t%s\n", one.ID, one.Version, one.Limit.Algorithm, one.Limit,
			cmp.Or(strings.Join(one.Per, ","), "(all)"), one.Mode, one.Durability, one.InstalledAt.UTC().Format("2006-01-02 15:04:05"))
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
			return p.printJSON(&found)
		}
		content, err := editObject(found.raw, []string{"id", "version", "installedAt"})
		if err != nil {
			return fmt.Errorf("read the service's answer: %w", err)
		}
		fmt.Fprintf(p.err, "%s v%d, installed %s\n", found.ID, found.Version, found.InstalledAt.Format("2006-01-02 15:04:05 MST"))
		_, err = p.out.Write(content)
		return err
	})
}
