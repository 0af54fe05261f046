package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// explained is how a request would fare, as the service answers it.
type explained struct {
	Allowed *bool `json:"allowed"` // nil: it would not be decided
	Problem *struct {
		Type   string  `json:"type"`
		Detail string  `json:"detail"`
		Errors []fault `json:"errors"`
	} `json:"problem"`
	Policies []struct {
		Policy    string     `json:"policy"`
		Version   int        `json:"version"`
		Standing  string     `json:"standing"`
		Missing   string     `json:"missing"`
		Override  string     `json:"override"`
		Cost      int64      `json:"cost"`
		Limit     *int64     `json:"limit"`
		Remaining *int64     `json:"remaining"`
		AllowedAt *time.Time `json:"allowedAt"`
	} `json:"policies"`
	NotMatching []struct {
		Policy   string   `json:"policy"`
		Field    string   `json:"field"`
		Value    string   `json:"value"`
		Patterns []string `json:"patterns"`
	} `json:"notMatching"`
	More int `json:"notMatchingMore"`
}

func (p *program) policyExplainCommand() *cobra.Command {
	var cost int64
	var only string
	command := p.overAdmin(&cobra.Command{
		Use:   "explain " + keyArguments,
		Short: "Say how a request would fare, and why",
		Long: "Says how a request would fare: which policies match it, which do not and why, what its keys have left, and when it would\n" +
			"be allowed. Nothing is charged. The request is given by its attributes, as gateways give them.",
		Example: "  ration policy explain verifiedAccount=A operation=report.create plan=standard",
		Args:    cobra.MinimumNArgs(1),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		attributes, err := readKey(arguments)
		if err != nil {
			return err
		}
		ask := map[string]any{}
		for name := range attributes {
			ask[name] = attributes.Get(name)
		}
		if cost != 0 {
			ask["cost"] = cost
		}
		body, err := json.Marshal(ask)
		if err != nil {
			return err
		}
		query := url.Values{}
		if only != "" {
			query.Set("policy", only)
		}
		var found explained
		raw, err := api.read(ctx, http.MethodPost, withQuery("/v1/explain", query), nil, body, &found)
		if err != nil {
			return err
		}
		if asJSON {
			return p.printRaw(raw)
		}
		return p.printExplained(&found)
	})
	command.Flags().Int64Var(&cost, "cost", 0, "the `cost` that the request states, if any")
	command.Flags().StringVar(&only, "policy", "", "of those that do not match, tell only of this `policy`")
	return command
}

func (p *program) printExplained(e *explained) error {
	switch {
	case e.Problem != nil:
		fmt.Fprintf(p.out, "not decided, %s: %s\n", e.Problem.Type, e.Problem.Detail)
		for _, f := range e.Problem.Errors {
			fmt.Fprintf(p.out, "  %s\n", f)
		}
	case e.Allowed != nil && *e.Allowed:
		fmt.Fprintln(p.out, "allowed")
	default:
		fmt.Fprintln(p.out, "denied")
	}
	if len(e.Policies) > 0 {
		table := p.table()
		fmt.Fprintln(table, "POLICY\tVERSION\tSTANDING\tCOST\tREMAINING\tLIMIT\tALLOWED AT (UTC)")
		for _, one := range e.Policies {
			standing := one.Standing
			if more := cmp.Or(one.Missing, one.Override); more != "" {
				standing += " (" + more + ")"
			}
			allowedAt := "-"
			if one.AllowedAt != nil {
				allowedAt = one.AllowedAt.UTC().Format(time.DateTime + ".000")
			}
			fmt.Fprintf(table, "%s\tv%d\t%s\t%d\t%s\t%s\t%s\n", one.Policy, one.Version, standing, one.Cost, number(one.Remaining), number(one.Limit), allowedAt)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	for _, other := range e.NotMatching {
		has := "and the request has none"
		if other.Value != "" {
			has = "not " + oneLine(other.Value)
		}
		fmt.Fprintf(p.out, "%s does not match: it takes %s %s, %s\n", other.Policy, other.Field, strings.Join(other.Patterns, ", "), has)
	}
	if e.More > 0 {
		fmt.Fprintf(p.out, "%d more do not match\n", e.More)
	}
	return nil
}

// number writes a figure that there may be none of.
func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}
