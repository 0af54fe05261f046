package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// errDiffers ends a command that was asked to say by its exit code that something
// would change.
var errDiffers = errors.New("something would change")

func (p *program) policyDiffCommand() *cobra.Command {
	var id string
	var exitCode bool
	command := p.overAdmin(&cobra.Command{
		Use:   "diff FILE",
		Short: "Print what installing a file would change",
		Long: "Asks the service what installing a policy from a file (`-`: standard input) would change: members, balances, warnings.\n" +
			"Nothing is changed. The file's name, without .json, is the policy's id.",
		Example: "  ration policy diff search.json",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		if id == "" {
			id = policyFileID(arguments[0])
		}
		body, err := p.readPolicy(arguments[0])
		if err != nil {
			return err
		}
		found, err := api.tryInForce(ctx, id, body)
		if err != nil {
			return err
		}
		if err := p.printTrial(&found, asJSON); err != nil {
			return err
		}
		if exitCode && !found.Unchanged {
			return errDiffers
		}
		return nil
	})
	command.Flags().StringVar(&id, "id", "", "the policy's `id`, where it is not the file's name")
	command.Flags().BoolVar(&exitCode, "exit-code", false, fmt.Sprintf("exit %d when something would change", exitDiffers))
	return command
}

// tryInForce asks what a put in place of whatever is in force would do.
func (a *adminAPI) tryInForce(ctx context.Context, id string, body []byte) (trial, error) {
	current, err := a.get(ctx, id)
	if refused, ok := errors.AsType[*problem](err); ok && refused.is("not-found") {
		return a.tryPut(ctx, id, 0, body)
	}
	if err != nil {
		return trial{}, err
	}
	return a.tryPut(ctx, id, current.Version, body)
}
