package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
)

// putFlags are those of `policy put`.
type putFlags struct {
	changeFlags

	create bool
}

func (p *program) policyPutCommand() *cobra.Command {
	var flags putFlags
	command := p.overAdmin(&cobra.Command{
		Use:   "put ID FILE (--create | --if-match vN)",
		Short: "Install a version of a policy",
		Long: "Installs a version of a policy from a JSON file (`-`: standard input). Say either --create, for a policy that must not\n" +
			"exist yet, or --if-match with the version that this one replaces: two operators cannot overwrite each other. The\n" +
			"same content as in force installs nothing.",
		Example: "  ration policy put search search.json --create\n" +
			"  ration policy put search search.json --if-match v1 --reason 'searches got dearer'",
		Args: cobra.ExactArgs(2),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		replaces, err := flags.replaces()
		if err != nil {
			return err
		}
		body, err := p.readPolicy(arguments[1])
		if err != nil {
			return err
		}
		body = withReason(body, flags.reason)
		if flags.dryRun {
			found, err := api.tryPut(ctx, arguments[0], replaces, body)
			if err != nil {
				return err
			}
			return p.printTrial(&found, asJSON)
		}
		installed, err := api.put(ctx, arguments[0], replaces, body, flags.query())
		if err != nil {
			return err
		}
		return p.sayInstalled(&installed, replaces, asJSON)
	})
	command.Flags().BoolVar(&flags.create, "create", false, "the policy must not exist yet")
	flags.add(command, "`reason` for the audit, in place of the file's own")
	flags.addDryRun(command)
	return command
}

// replaces gives the version that a put may replace, 0 when the policy must
// not exist.
func (f *putFlags) replaces() (int, error) {
	if f.create == (f.ifMatch != "") {
		return 0, usageError{errors.New("say either --create, for a policy that must not exist yet, or --if-match vN, to replace version N")}
	}
	if f.create {
		return 0, nil
	}
	return f.version()
}

// withReason gives the body of a put with another reason, where one is stated.
func withReason(body []byte, reason string) []byte {
	if reason == "" {
		return body
	}
	if edited, err := editObject(body, []string{"reason"}, member{"reason", reason}); err == nil {
		return edited
	}
	return body
}
