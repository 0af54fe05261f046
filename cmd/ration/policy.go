package main

import (
	"cmp"
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
			Short: "List, read and change policies",
			Long:  "Lists, reads and changes policies through the administration listener of a running service, RATION_ADMIN_URL.",
		},
		p.policyListCommand(), p.policyGetCommand(), p.policyPutCommand(),
	)
}

// outputFlag adds the choice between text for people and JSON for programs.
func outputFlag(command *cobra.Command) (asJSON func() (bool, error)) {
	form := command.Flags().StringP("output", "o", "text", "`form` of what is printed: text, or json as the service answered it")
	return func() (bool, error) {
		if *form != "text" && *form != "json" {
			return false, usageError{fmt.Errorf("--output %q: it is text or json", *form)}
		}
		return *form == "json", nil
	}
}

func (p *program) policyListCommand() *cobra.Command {
	command := reads(&cobra.Command{
		Use:   "list",
		Short: "List the policies in force",
		Args:  cobra.NoArgs,
	}, adminConfig{})
	wantsJSON := outputFlag(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		asJSON, err := wantsJSON()
		if err != nil {
			return err
		}
		api, err := p.adminAPI()
		if err != nil {
			return err
		}
		policies, err := api.list(command.Context())
		if err != nil {
			return err
		}
		if asJSON {
			return p.printList(policies)
		}
		return p.printTable(policies)
	}
	return command
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
	fmt.Fprintln(table, "ID\tVERSION\tCAPACITY\tREFILL\tPER\tMODE\tDURABILITY\tINSTALLED (UTC)")
	for _, one := range policies {
		fmt.Fprintf(table, "%s\tv%d\t%s\t%s every %s s\t%s\t%s\t%s\t%s\n", one.ID, one.Version,
			one.Limit.Capacity, one.Limit.RefillTokens, one.Limit.RefillSeconds,
			cmp.Or(strings.Join(one.Per, ","), "(all)"), one.Mode, one.Durability, one.InstalledAt.UTC().Format("2006-01-02 15:04:05"))
	}
	return table.Flush()
}

func (p *program) policyGetCommand() *cobra.Command {
	command := reads(&cobra.Command{
		Use:   "get ID",
		Short: "Print a policy, ready to be edited and put back",
		Long: "Prints the policy in force as the JSON that `policy put` takes. Its version is told on standard error, so that\n" +
			"standard output can be kept in a file.",
		Example: "  ration policy get search >search.json\n  ration policy put search search.json --if-match v1",
		Args:    cobra.ExactArgs(1),
	}, adminConfig{})
	wantsJSON := outputFlag(command)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		asJSON, err := wantsJSON()
		if err != nil {
			return err
		}
		api, err := p.adminAPI()
		if err != nil {
			return err
		}
		found, err := api.get(command.Context(), arguments[0])
		if err != nil {
			return err
		}
		if asJSON {
			_, err := fmt.Fprintf(p.out, "%s\n", found.raw)
			return err
		}
		content, err := editObject(found.raw, []string{"id", "version", "installedAt"})
		if err != nil {
			return fmt.Errorf("read the service's answer: %w", err)
		}
		fmt.Fprintf(p.err, "%s v%d, installed %s\n", found.ID, found.Version, found.InstalledAt.Format("2006-01-02 15:04:05 MST"))
		_, err = p.out.Write(content)
		return err
	}
	return command
}
