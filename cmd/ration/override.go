package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

func (p *program) overrideCommand() *cobra.Command {
	return group(
		&cobra.Command{
			Use:   "override",
			Short: "Set, remove and list exceptions for single keys",
			Long:  "Sets, removes and lists a policy's exceptions for single keys, through the administration listener.",
		},
		p.overrideSetCommand(), p.overrideRemoveCommand(), p.overrideListCommand(),
	)
}

// override is an exception as the service answers it.
type override struct {
	Attributes map[string]string `json:"attributes"`
	Action     string            `json:"action"`
	Limit      *limit            `json:"limit"`
	Reason     string            `json:"reason"`
	Actor      string            `json:"actor"`
	ExpiresAt  *time.Time        `json:"expiresAt"`
}

// what says what the exception is.
func (o *override) what() string {
	if o.Limit == nil {
		return o.Action
	}
	return o.Limit.String()
}

// until says how long it lasts.
func (o *override) until() string {
	if o.ExpiresAt == nil {
		return "removed"
	}
	return o.ExpiresAt.UTC().Format(time.DateTime)
}

func overridesPath(id string, key url.Values) string {
	return withQuery(policyPath(id)+"/overrides", key)
}

// overrideFlags are those of `override set`.
type overrideFlags struct {
	limit           string
	exempt, blocked bool
	reason, at      string
	in              time.Duration
}

func (p *program) overrideSetCommand() *cobra.Command {
	var flags overrideFlags
	command := p.overAdmin(&cobra.Command{
		Use:   "set POLICY " + keyArguments + " (--limit JSON | --exempt | --blocked) --reason WHY",
		Short: "Make an exception for a key, in place of the one it has",
		Long:  "Gives one key another limit of the same kind, exempts it from the policy, or blocks it.\n" + keyHelp,
		Example: `  ration override set report-create verifiedAccount=A operation=report.create --reason 'paid for more' \` + "\n" +
			`    --limit '{"algorithm":"token_bucket","capacity":400,"refillTokens":200,"refillSeconds":1}' --expires-in 720h` + "\n" +
			"  ration override set login-ip ip=192.0.2.1 --blocked --reason 'guesses passwords'",
		Args: cobra.MinimumNArgs(1),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		key, err := readKey(arguments[1:])
		if err != nil {
			return err
		}
		body, err := flags.body()
		if err != nil {
			return err
		}
		var o override
		raw, err := api.read(ctx, http.MethodPut, overridesPath(arguments[0], key), nil, body, &o)
		if err != nil {
			return err
		}
		if asJSON {
			return p.printRaw(raw)
		}
		_, err = fmt.Fprintf(p.out, "%s: %s is %s until %s\n", arguments[0], keyText(o.Attributes), o.what(), o.until())
		return err
	})
	set := command.Flags()
	set.StringVar(&flags.limit, "limit", "", "another limit, the `JSON` that a policy's limit is")
	set.BoolVar(&flags.exempt, "exempt", false, "the policy does not apply")
	set.BoolVar(&flags.blocked, "blocked", false, "every request is denied")
	set.StringVar(&flags.reason, "reason", "", "`reason` for the audit")
	set.StringVar(&flags.at, "expires-at", "", "the `instant` it ends, such as 2026-12-31T23:59:59Z")
	set.DurationVar(&flags.in, "expires-in", 0, "the `time` it lasts, such as 48h")
	return command
}

// body makes the request's body.
func (f *overrideFlags) body() ([]byte, error) {
	ask := map[string]any{"reason": f.reason}
	chosen := 0
	for action, is := range map[string]bool{"limit": f.limit != "", "exempt": f.exempt, "blocked": f.blocked} {
		if is {
			chosen++
			ask["action"] = action
		}
	}
	switch {
	case chosen != 1:
		return nil, usageError{errors.New("say one of --limit, --exempt and --blocked")}
	case f.reason == "":
		return nil, usageError{errors.New("say --reason")}
	case f.at != "" && f.in != 0:
		return nil, usageError{errors.New("say one of --expires-at and --expires-in")}
	case f.in < 0 || f.in%time.Second != 0:
		return nil, usageError{fmt.Errorf("--expires-in %s: whole seconds", f.in)}
	case f.limit != "" && !json.Valid([]byte(f.limit)):
		return nil, usageError{errors.New("--limit is no JSON")}
	}
	if f.limit != "" {
		ask["limit"] = json.RawMessage(f.limit)
	}
	if f.at != "" {
		ask["expiresAt"] = f.at
	}
	if f.in > 0 {
		ask["expiresInSeconds"] = int64(f.in / time.Second)
	}
	return json.Marshal(ask)
}

func (p *program) overrideRemoveCommand() *cobra.Command {
	var reason string
	command := p.overAdmin(&cobra.Command{
		Use:     "remove POLICY " + keyArguments,
		Short:   "Take a key's exception away",
		Long:    "Takes a key's exception away: the policy holds for it as for all others.\n" + keyHelp,
		Example: "  ration override remove login-ip ip=192.0.2.1 --reason 'the address has changed hands'",
		Args:    cobra.MinimumNArgs(1),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		key, err := readKey(arguments[1:])
		if err != nil {
			return err
		}
		if reason != "" {
			key.Set("reason", reason)
		}
		if _, _, err := api.call(ctx, http.MethodDelete, overridesPath(arguments[0], key), nil, nil); err != nil || asJSON {
			return err
		}
		_, err = fmt.Fprintf(p.out, "%s holds for it again\n", arguments[0])
		return err
	})
	command.Flags().StringVar(&reason, "reason", "", "`reason` for the audit")
	return command
}

func (p *program) overrideListCommand() *cobra.Command {
	return p.overAdmin(&cobra.Command{
		Use:   "list POLICY",
		Short: "List a policy's exceptions",
		Args:  cobra.ExactArgs(1),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		all, raw, err := collect[override](ctx, api, overridesPath(arguments[0], nil), nil, "overrides", allRows)
		if err != nil {
			return err
		}
		if asJSON {
			return p.printAll("overrides", raw)
		}
		table := p.table()
		fmt.Fprintln(table, "CALLER\tIS\tUNTIL (UTC)\tBY\tREASON")
		for i := range all {
			o := &all[i]
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", keyText(o.Attributes), o.what(), o.until(), oneLine(o.Actor), oneLine(o.Reason))
		}
		return table.Flush()
	})
}
