package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

func (p *program) bucketCommand() *cobra.Command {
	return group(
		&cobra.Command{
			Use:   "bucket",
			Short: "Look at what keys have left, and set it",
			Long:  "Looks at what single keys have left, of whatever algorithm, and sets it, through the administration listener.",
		},
		p.bucketShowCommand(), p.bucketResetCommand(), p.bucketRebaseCommand(),
	)
}

// bucket is the state of one key as the service answers it.
type bucket struct {
	Policy         string            `json:"policy"`
	PolicyVersion  int               `json:"policyVersion"`
	Algorithm      string            `json:"algorithm"`
	Key            string            `json:"key"`
	Attributes     map[string]string `json:"attributes"`
	Limit          int64             `json:"limit"`
	Remaining      int64             `json:"remaining"`
	Owed           int64             `json:"owed"`
	ResetAt        time.Time         `json:"resetAt"`
	Stored         bool              `json:"stored"`
	SettledVersion int               `json:"settledVersion"`
	AheadMillis    int64             `json:"aheadMillis"`
	Slots          []struct {
		SlotID    string    `json:"slotId"`
		Cost      int64     `json:"cost"`
		ExpiresAt time.Time `json:"expiresAt"`
	} `json:"slots"`
	Override *struct {
		Action    string     `json:"action"`
		Reason    string     `json:"reason"`
		Actor     string     `json:"actor"`
		ExpiresAt *time.Time `json:"expiresAt"`
	} `json:"override"`

	raw json.RawMessage // the whole answer, as it came
}

func (p *program) bucketShowCommand() *cobra.Command {
	var rows int
	command := p.overAdmin(&cobra.Command{
		Use:   "show POLICY [" + keyArguments + "]",
		Short: "Print what a key has left, or list a policy's keys",
		Long: "Prints all that is kept of one key: what is left, until when, slots, override.\n" + keyHelp + "\n" +
			"Without attributes it lists stored keys of the policy, by their hashes: which callers they are is not stored.",
		Example: "  ration bucket show report-create verifiedAccount=A operation=report.create\n  ration bucket show report-create --rows 10",
		Args:    cobra.MinimumNArgs(1),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		if len(arguments) == 1 {
			return p.listBuckets(ctx, api, arguments[0], rows, asJSON)
		}
		key, err := readKey(arguments[1:])
		if err != nil {
			return err
		}
		key.Set("policy", arguments[0])
		var b bucket
		if b.raw, err = api.read(ctx, http.MethodGet, "/v1/buckets?"+key.Encode(), nil, nil, &b); err != nil {
			return err
		}
		return p.printBucket(&b, asJSON)
	})
	command.Flags().IntVar(&rows, "rows", rowsDefault, "at most this `number`, of a list")
	return command
}

func (p *program) listBuckets(ctx context.Context, api *adminAPI, id string, rows int, asJSON bool) error {
	if err := checkRows(rows); err != nil {
		return err
	}
	all, raw, err := collect[bucket](ctx, api, "/v1/buckets", url.Values{"policy": {id}}, "buckets", rows)
	if err != nil {
		return err
	}
	if asJSON {
		return p.printAll("buckets", raw)
	}
	table := p.table()
	fmt.Fprintln(table, "KEY\tLIMIT\tREMAINING\tRESET (UTC)\tSETTLED\tOVERRIDE")
	for i := range all {
		b := &all[i]
		override := "-"
		if b.Override != nil {
			override = b.Override.Action
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\n", b.Key, b.Limit, b.left(), b.ResetAt.UTC().Format(time.DateTime), b.settled(), override)
	}
	return table.Flush()
}

// left says what is left, or owed.
func (b *bucket) left() string {
	if b.Owed > 0 {
		return fmt.Sprintf("-%d", b.Owed)
	}
	return fmt.Sprint(b.Remaining)
}

// settled says under which version the row was written last.
func (b *bucket) settled() string {
	if b.SettledVersion == 0 {
		return "-"
	}
	return fmt.Sprintf("v%d", b.SettledVersion)
}

// printBucket prints the state of one key.
func (p *program) printBucket(b *bucket, asJSON bool) error {
	if asJSON {
		return p.printRaw(b.raw)
	}
	table := p.table()
	line := func(name, format string, arguments ...any) { fmt.Fprintf(table, name+"\t"+format+"\n", arguments...) }
	line("policy", "%s v%d, %s", b.Policy, b.PolicyVersion, b.Algorithm)
	line("caller", "%s", cmp.Or(keyText(b.Attributes), "(all)"))
	line("key", "%s", b.Key)
	line("left", "%s of %d", b.left(), b.Limit)
	line("full again", "%s", b.ResetAt.UTC().Format(time.DateTime+".000 MST"))
	switch {
	case !b.Stored:
		line("stored", "no: it never spent, or is full again")
	case b.SettledVersion > 0:
		line("stored", "settled under v%d", b.SettledVersion)
	}
	if b.AheadMillis > 0 {
		line("ahead", "%s of the clock: see ration bucket rebase", time.Duration(b.AheadMillis)*time.Millisecond)
	}
	for _, slot := range b.Slots {
		line("slot", "%s holds %d until %s", slot.SlotID, slot.Cost, slot.ExpiresAt.UTC().Format(time.DateTime))
	}
	if o := b.Override; o != nil {
		until := "until it is removed"
		if o.ExpiresAt != nil {
			until = "until " + o.ExpiresAt.UTC().Format(time.DateTime)
		}
		line("override", "%s %s, by %s: %s", o.Action, until, oneLine(o.Actor), oneLine(o.Reason))
	}
	return table.Flush()
}
