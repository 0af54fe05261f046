package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// policyBytesMax is a byte more than the service accepts, so that it is the
// service who says that a policy is too long. More than that it would not read
// to the end, and nobody would hear what it says.
const policyBytesMax = 64<<10 + 1

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
		body, err := p.readPolicy(arguments[1], flags.reason)
		if err != nil {
			return err
		}
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

// readPolicy reads the body of a put. Whether it is a policy is for the
// service to say, so what is no JSON object goes there as it is.
func (p *program) readPolicy(file, reason string) ([]byte, error) {
	from := p.in
	if file != "-" {
		opened, err := os.Open(file) //nolint:gosec // the caller's own file, by the caller's own word
		if err != nil {
			return nil, err
		}
		defer opened.Close() //nolint:errcheck // it was only read
		from = opened
	}
	body, err := io.ReadAll(io.LimitReader(from, policyBytesMax))
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	return withReason(body, reason), nil
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
