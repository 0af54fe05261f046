package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

func (p *program) policyShadowReportCommand() *cobra.Command {
	var rows int
	var version string
	command := p.overAdmin(&cobra.Command{
		Use:   "shadow-report ID",
		Short: "Say whom a shadow policy would have denied",
		Long: "Says how many requests a policy would have denied while its mode was shadow, and whose, the most denied first.\n" +
			"It names accounts: they are in no metric and no log.",
		Example: "  ration policy shadow-report search --rows 10",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		if err := checkRows(rows); err != nil {
			return err
		}
		query := url.Values{"limit": {strconv.Itoa(min(rows, pageRows))}}
		if version != "" {
			number, ok := parseVersion(version)
			if !ok {
				return usageError{fmt.Errorf("--version %q is not a version such as v7", version)}
			}
			query.Set("version", strconv.Itoa(number))
		}
		var report shadowReport
		raw, err := api.read(ctx, http.MethodGet, withQuery(policyPath(arguments[0])+"/shadow-report", query), nil, nil, &report)
		if err != nil {
			return err
		}
		if asJSON {
			return p.printRaw(raw)
		}
		return p.printShadows(&report)
	})
	command.Flags().IntVar(&rows, "rows", rowsDefault, "at most this `number` of keys, up to 1000")
	command.Flags().StringVar(&version, "version", "", "of this `version`, not the one in force")
	return command
}

// shadowReport is what a shadow would have done, as the service answers it.
type shadowReport struct {
	Policy       string `json:"policy"`
	Version      int    `json:"version"`
	Decided      int64  `json:"decided"`
	Denied       int64  `json:"denied"`
	DeniedOthers int64  `json:"deniedOthers"`
	KeyCount     int64  `json:"keyCount"`
	Keys         []struct {
		Who     map[string]string `json:"who"`
		Denied  int64             `json:"denied"`
		FirstAt time.Time         `json:"firstAt"`
		LastAt  time.Time         `json:"lastAt"`
	} `json:"keys"`
}

func (p *program) printShadows(report *shadowReport) error {
	fmt.Fprintf(p.out, "%s v%d: of %d requests %d would have been denied\n", report.Policy, report.Version, report.Decided, report.Denied)
	if len(report.Keys) == 0 {
		return nil
	}
	table := p.table()
	fmt.Fprintln(table, "DENIED\tCALLER\tFIRST (UTC)\tLAST (UTC)")
	for _, key := range report.Keys {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", key.Denied, cmp.Or(keyText(key.Who), "(all)"),
			key.FirstAt.UTC().Format(time.DateTime), key.LastAt.UTC().Format(time.DateTime))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if more := report.KeyCount - int64(len(report.Keys)); more > 0 {
		fmt.Fprintf(p.out, "and %d more callers\n", more)
	}
	if report.DeniedOthers > 0 {
		fmt.Fprintf(p.out, "%d of these denials are of callers that are not told apart\n", report.DeniedOthers)
	}
	return nil
}
