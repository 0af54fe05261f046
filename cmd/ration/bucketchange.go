package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

func (p *program) bucketResetCommand() *cobra.Command {
	var to, reason string
	var release bool
	command := p.overAdmin(&cobra.Command{
		Use:   "reset POLICY " + keyArguments + " --to full|empty --reason WHY",
		Short: "Make a key full or empty",
		Long: "Makes one key full, nothing spent, or empty, all spent, of whatever algorithm, with a row in the audit.\n" + keyHelp + "\n" +
			"The live slots of a concurrency key are only ended with --release-slots: the work that holds them goes on.",
		Example: "  ration bucket reset report-create verifiedAccount=A operation=report.create --to full --reason 'a fault of ours'",
		Args:    cobra.MinimumNArgs(1),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		key, err := readKey(arguments[1:])
		if err != nil {
			return err
		}
		if to == "" || reason == "" {
			return usageError{errors.New("say --to full or --to empty, and --reason")}
		}
		ask := map[string]any{"policy": arguments[0], "to": to, "reason": reason}
		for name := range key {
			ask[name] = key.Get(name)
		}
		if release {
			ask["releaseSlots"] = true
		}
		body, err := json.Marshal(ask)
		if err != nil {
			return err
		}
		var b bucket
		if b.raw, err = api.read(ctx, http.MethodPost, "/v1/buckets/reset", nil, body, &b); err != nil {
			return err
		}
		return p.printBucket(&b, asJSON)
	})
	command.Flags().StringVar(&to, "to", "", "the `state` to set: full or empty")
	command.Flags().StringVar(&reason, "reason", "", "`reason` for the audit")
	command.Flags().BoolVar(&release, "release-slots", false, "end live slots")
	return command
}

func (p *program) bucketRebaseCommand() *cobra.Command {
	var reason string
	command := p.overAdmin(&cobra.Command{
		Use:   "rebase --reason WHY",
		Short: "Set to now what is ahead of the database's clock",
		Long: "Sets to now what is ahead of the database's clock, as a clock that stepped forward and back leaves it: until the clock\n" +
			"is there, such a bucket earns nothing and such a window does not end. Everything stored is looked at, piece by piece;\n" +
			"each piece that changes anything has its row in the audit.",
		Example: "  ration bucket rebase --reason 'the clock stepped an hour'",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, api *adminAPI, _ []string, asJSON bool) error {
		if reason == "" {
			return usageError{errors.New("say --reason")}
		}
		total := 0
		for after := ""; ; {
			ask := map[string]string{"reason": reason}
			if after != "" {
				ask["after"] = after
			}
			body, err := json.Marshal(ask)
			if err != nil {
				return err
			}
			var part struct {
				Rebased int    `json:"rebased"`
				Next    string `json:"next"`
			}
			if _, err := api.read(ctx, http.MethodPost, "/v1/buckets/rebase", nil, body, &part); err != nil {
				return fmt.Errorf("%w\n  %d rows were set to now before", err, total)
			}
			total += part.Rebased
			if after = part.Next; after == "" {
				break
			}
		}
		if asJSON {
			return json.NewEncoder(p.out).Encode(map[string]int{"rebased": total})
		}
		_, err := fmt.Fprintf(p.out, "%d rows were ahead of the clock and are set to now\n", total)
		return err
	})
	command.Flags().StringVar(&reason, "reason", "", "`reason` for the audit")
	return command
}
