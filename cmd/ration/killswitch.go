package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

const killSwitchPath = "/v1/kill-switch"

func (p *program) killSwitchCommand() *cobra.Command {
	return group(
		&cobra.Command{
			Use:   "kill-switch",
			Short: "Have enforced policies deny nobody for a while",
			Long: "Makes the enforced policies whose ids begin with a prefix shadows for a while: they count and deny nobody. For\n" +
				"the moment when a limit hurts more than it helps.",
		},
		p.killSwitchThrowCommand(), p.killSwitchTakeBackCommand(), p.killSwitchListCommand(),
	)
}

// killSwitch is a kill switch as the service answers it.
type killSwitch struct {
	Prefix    string    `json:"prefix"`
	Reason    string    `json:"reason"`
	Actor     string    `json:"actor"`
	ExpiresAt time.Time `json:"expiresAt"`
	Policies  int       `json:"policies"` // of one that was just thrown
}

// killSwitchPrefix is the one that a command line names.
func killSwitchPrefix(arguments []string, all bool) (string, error) {
	if all == (len(arguments) == 1) {
		return "", usageError{errors.New("name a prefix of policies' ids, or say --all")}
	}
	if all {
		return "", nil
	}
	return arguments[0], nil
}

func (p *program) killSwitchThrowCommand() *cobra.Command {
	var all bool
	var lasts time.Duration
	var reason string
	command := p.overAdmin(&cobra.Command{
		Use:     "throw (PREFIX | --all) --for TIME --reason WHY",
		Short:   "Have a prefix's policies deny nobody for a while",
		Example: "  ration kill-switch throw report --for 10m --reason 'reports are denied by mistake'",
		Args:    cobra.MaximumNArgs(1),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		prefix, err := killSwitchPrefix(arguments, all)
		if err != nil {
			return err
		}
		if reason == "" || lasts <= 0 || lasts%time.Second != 0 {
			return usageError{errors.New("say --for in whole seconds, and --reason")}
		}
		body, err := json.Marshal(map[string]any{"prefix": prefix, "forSeconds": int64(lasts / time.Second), "reason": reason})
		if err != nil {
			return err
		}
		var thrown killSwitch
		raw, err := api.read(ctx, http.MethodPost, killSwitchPath, nil, body, &thrown)
		if err != nil {
			return err
		}
		if asJSON {
			return p.printRaw(raw)
		}
		_, err = fmt.Fprintf(p.out, "policies that deny nobody until %[2]s UTC: %[1]d\n", thrown.Policies, thrown.ExpiresAt.UTC().Format(time.DateTime))
		return err
	})
	command.Flags().BoolVar(&all, "all", false, "all policies")
	command.Flags().DurationVar(&lasts, "for", 0, "the `time` it lasts, 1s to 24h")
	command.Flags().StringVar(&reason, "reason", "", "`reason` for the audit")
	return command
}

func (p *program) killSwitchTakeBackCommand() *cobra.Command {
	var all bool
	var reason string
	command := p.overAdmin(&cobra.Command{
		Use:     "take-back (PREFIX | --all)",
		Short:   "Have a prefix's policies enforced again",
		Example: "  ration kill-switch take-back report",
		Args:    cobra.MaximumNArgs(1),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		prefix, err := killSwitchPrefix(arguments, all)
		if err != nil {
			return err
		}
		query := url.Values{"prefix": {prefix}}
		if reason != "" {
			query.Set("reason", reason)
		}
		if _, _, err := api.call(ctx, http.MethodDelete, withQuery(killSwitchPath, query), nil, nil); err != nil || asJSON {
			return err
		}
		_, err = fmt.Fprintln(p.out, "taken back")
		return err
	})
	command.Flags().BoolVar(&all, "all", false, "the one for all policies")
	command.Flags().StringVar(&reason, "reason", "", "`reason` for the audit")
	return command
}

func (p *program) killSwitchListCommand() *cobra.Command {
	return p.overAdmin(&cobra.Command{
		Use:   "list",
		Short: "List the kill switches that are thrown",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, api *adminAPI, _ []string, asJSON bool) error {
		var page struct {
			KillSwitches []killSwitch `json:"killSwitches"`
		}
		raw, err := api.read(ctx, http.MethodGet, killSwitchPath, nil, nil, &page)
		if err != nil {
			return err
		}
		if asJSON {
			return p.printRaw(raw)
		}
		table := p.table()
		fmt.Fprintln(table, "PREFIX\tUNTIL (UTC)\tBY\tREASON")
		for _, one := range page.KillSwitches {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", cmp.Or(one.Prefix, "(all)"), one.ExpiresAt.UTC().Format(time.DateTime), oneLine(one.Actor), oneLine(one.Reason))
		}
		return table.Flush()
	})
}
