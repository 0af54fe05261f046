package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rationhq/ration/internal/authority"
	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// tokenLifeMax only catches slips of the keyboard.
const tokenLifeMax = 10 * 366 * 24 * time.Hour

func (p *program) tokenCommand() *cobra.Command {
	return group(
		&cobra.Command{
			Use:   "token",
			Short: "Make, list and revoke the tokens of callers",
			Long: "Makes, lists and revokes the tokens by which operators and gateways show who they are, in the database\n" +
				"RATION_DATABASE_URL. Its role has to own the schema to make one, and has to be in ration_operator to list and revoke.\n" +
				"Every instance knows of it within a second.",
		},
		p.tokenCreateCommand(), p.tokenListCommand(), p.tokenRevokeCommand(),
	)
}

// tokenFlags are those of `token create`.
type tokenFlags struct {
	role                          string
	gateway                       bool
	accounts, operations, regions []string
	life                          time.Duration
	reason                        string
}

func (p *program) tokenCreateCommand() *cobra.Command {
	var flags tokenFlags
	command := &cobra.Command{
		Use:   "create NAME (--role ROLE | --gateway)",
		Short: "Make a token, and print it this once",
		Long: "Makes a token for an operator or a gateway and prints it, alone, on standard output: it is kept as a hash only, and\n" +
			"cannot be shown again. Names are for the audit and, of gateways, for operation ids; several tokens may have one, as\n" +
			"while one replaces another.\n\n" +
			"Operators are viewer (read), operator (also change policies, overrides and balances) or admin (also delete policies and\n" +
			"throw the kill switch). A gateway asks for decisions, of the accounts, operations and regions that its flags name (exact\n" +
			"names, or beginnings such as 'report.*'); without a flag of a kind, of all.",
		Example: "  ration token create ann --role admin --expires-in 2160h\n" +
			"  ration token create edge --gateway --operation 'report.*' --region eu",
		Args: cobra.ExactArgs(1),
	}
	command.Flags().StringVar(&flags.role, "role", "", "an operator's `role`: viewer, operator or admin")
	command.Flags().BoolVar(&flags.gateway, "gateway", false, "it is a gateway")
	command.Flags().StringArrayVar(&flags.accounts, "account", nil, "`pattern` of accounts that the gateway may speak for; repeat it for more")
	command.Flags().StringArrayVar(&flags.operations, "operation", nil, "`pattern` of operations")
	command.Flags().StringArrayVar(&flags.regions, "region", nil, "`pattern` of regions")
	command.Flags().DurationVar(&flags.life, "expires-in", 0, "the `time` that it lets in, such as 2160h (until it is revoked)")
	command.Flags().StringVar(&flags.reason, "reason", "", "`reason` for the audit")
	return p.overStore(command, func(ctx context.Context, store *pgstore.Store, arguments []string, asJSON bool) error {
		caller, err := flags.caller(arguments[0])
		if err != nil {
			return usageError{err}
		}
		secret := authority.NewSecret()
		made, err := store.CreateToken(ctx, policy.Token{Caller: caller, Hash: secret.Hash()}, flags.life, flags.reason)
		if err != nil {
			return err
		}
		shown := tokenRowOf(&made)
		shown.Token = secret.Token(made.ID)
		if asJSON {
			return json.NewEncoder(p.out).Encode(shown)
		}
		fmt.Fprintf(p.err, "token %d of %s (%s), %s; it is shown this once\n", shown.ID, shown.Name, shown.may(), shown.until())
		fmt.Fprintln(p.out, shown.Token)
		return nil
	})
}

// caller is who the flags describe.
func (f *tokenFlags) caller(name string) (policy.Caller, error) {
	caller := policy.Caller{Name: name}
	scoped := len(f.accounts)+len(f.operations)+len(f.regions) > 0
	switch {
	case !policy.ValidCallerName(name):
		return caller, fmt.Errorf("%q is not a name: it must match [A-Za-z0-9][A-Za-z0-9._@-]{0,63}", name)
	case f.gateway == (f.role != ""):
		return caller, errors.New("say either --role, for an operator, or --gateway")
	case scoped && !f.gateway:
		return caller, errors.New("--account, --operation and --region are a gateway's")
	case f.life < 0 || f.life > tokenLifeMax || f.life > 0 && f.life < time.Second:
		return caller, fmt.Errorf("--expires-in is %s and must be 1s to %s", f.life, tokenLifeMax)
	case !f.gateway:
		var known bool
		if caller.Role, known = policy.ParseRole(f.role); !known {
			return caller, fmt.Errorf("--role %q: it is viewer, operator or admin", f.role)
		}
		return caller, nil
	}
	written, err := json.Marshal(struct {
		Accounts   []string `json:"accounts,omitempty"`
		Operations []string `json:"operations,omitempty"`
		Regions    []string `json:"regions,omitempty"`
	}{f.accounts, f.operations, f.regions})
	if err != nil {
		return caller, err
	}
	scope, err := policy.ParseGatewayScope(written)
	caller.Gateway = &policy.Gateway{Name: name, Scope: scope}
	return caller, err
}

func (p *program) tokenRevokeCommand() *cobra.Command {
	var reason string
	command := &cobra.Command{
		Use:     "revoke ID",
		Short:   "Have a token let nobody in any more",
		Example: "  ration token revoke 3 --reason 'found in a log'",
		Args:    cobra.ExactArgs(1),
	}
	command.Flags().StringVar(&reason, "reason", "", "`reason` for the audit")
	return p.overStore(command, func(ctx context.Context, store *pgstore.Store, arguments []string, asJSON bool) error {
		id, err := strconv.ParseInt(arguments[0], 10, 64)
		if err != nil || id < 1 {
			return usageError{fmt.Errorf("%q is not the number of a token, as `ration token list` shows it", arguments[0])}
		}
		revoked, err := store.RevokeToken(ctx, id, reason)
		switch {
		case err != nil:
			return err
		case asJSON:
			return json.NewEncoder(p.out).Encode(map[string]any{"id": id, "revoked": revoked})
		case revoked:
			fmt.Fprintf(p.out, "token %d is revoked\n", id)
		default:
			fmt.Fprintf(p.out, "token %d was revoked before\n", id)
		}
		return nil
	})
}

// overStore makes a command of what is done in the database itself. It adds
// the choice between text for people and JSON for programs.
func (p *program) overStore(
	command *cobra.Command, do func(ctx context.Context, store *pgstore.Store, arguments []string, asJSON bool) error,
) *cobra.Command {
	form := outputFlag(command, "text or json")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		asJSON, err := form.isJSON()
		if err != nil {
			return err
		}
		store, err := p.openStore(command.Context())
		if err != nil {
			return err
		}
		defer store.Close()
		return do(command.Context(), store, arguments, asJSON)
	}
	return reads(command, databaseConfig{})
}
