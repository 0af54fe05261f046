package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// policyBytesMax is more than the service accepts, so that it is the service
// who says that a policy is too long.
const policyBytesMax = 1 << 20

// putFlags are those of `policy put`.
type putFlags struct {
	create  bool
	ifMatch string
	reason  string
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
		installed, err := api.put(ctx, arguments[0], replaces, body)
		if err != nil {
			return err
		}
		if asJSON {
			return p.printJSON(&installed)
		}
		p.sayInstalled(&installed, replaces)
		return nil
	})
	command.Flags().BoolVar(&flags.create, "create", false, "the policy must not exist yet")
	command.Flags().StringVar(&flags.ifMatch, "if-match", "", "the `version` that is replaced, such as v7")
	command.Flags().StringVar(&flags.reason, "reason", "", "`reason` for the audit, in place of the file's own")
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
	version, err := strconv.Atoi(strings.TrimPrefix(strings.Trim(f.ifMatch, `"`), "v"))
	if err != nil || version < 1 {
		return 0, usageError{fmt.Errorf("--if-match %q is not a version such as v7", f.ifMatch)}
	}
	return version, nil
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
	if reason == "" {
		return body, nil
	}
	if edited, err := editObject(body, []string{"reason"}, member{"reason", reason}); err == nil {
		return edited, nil
	}
	return body, nil
}

func (p *program) sayInstalled(installed *policyVersion, replaced int) {
	switch {
	case installed.Version == replaced:
		fmt.Fprintf(p.out, "%s v%d has this content already\n", installed.ID, installed.Version)
	case replaced == 0:
		fmt.Fprintf(p.out, "%s v%d is in force\n", installed.ID, installed.Version)
	default:
		fmt.Fprintf(p.out, "%s v%d is in force, after v%d\n", installed.ID, installed.Version, replaced)
	}
	for _, warning := range installed.Warnings {
		fmt.Fprintf(p.err, "warning: %s %s\n", warning.Pointer, warning.Detail)
	}
}
