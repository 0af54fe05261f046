package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// trial is what a change would do, as the service answers a dry run.
type trial struct {
	ID        string        `json:"id"`
	Replaces  int           `json:"replaces"`  // 0: it would create the policy
	Unchanged bool          `json:"unchanged"` // nothing would be installed
	Changes   []changed     `json:"changes"`
	Warnings  []fault       `json:"warnings"`
	Balances  trialBalances `json:"balances"`
	Restarts  []string      `json:"restarts"`

	raw json.RawMessage // the whole answer, as it came
}

// changed is one member of a policy's stored form that would change.
type changed struct {
	Pointer string          `json:"pointer"`
	Before  json.RawMessage `json:"before"`
	After   json.RawMessage `json:"after"`
}

type trialBalances struct {
	Rule    string `json:"rule"`
	Live    int64  `json:"live"`
	Clamped int64  `json:"clamped"`
	Denied  int64  `json:"denied"`
	AtLeast bool   `json:"atLeast"`
}

// String says what becomes of balances in a sentence.
func (b trialBalances) String() string {
	least := ""
	if b.AtLeast {
		least = "at least "
	}
	return fmt.Sprintf("%s; %s%d live, %s%d would be clamped, %s%d could no longer pay for a call",
		b.Rule, least, b.Live, least, b.Clamped, least, b.Denied)
}

// try asks what a put or a rollback would do.
func (a *adminAPI) try(ctx context.Context, method, path string, replaces int, body []byte) (trial, error) {
	var t trial
	raw, err := a.read(ctx, method, withQuery(path, url.Values{"dryRun": {"true"}}), replacing(replaces), body, &t)
	t.raw = raw
	return t, err
}

// tryPut asks what a put would do.
func (a *adminAPI) tryPut(ctx context.Context, id string, replaces int, body []byte) (trial, error) {
	return a.try(ctx, http.MethodPut, policyPath(id), replaces, body)
}

// printTrial prints what a change would do, or the service's answer.
func (p *program) printTrial(t *trial, asJSON bool) error {
	if asJSON {
		return p.printRaw(t.raw)
	}
	paint := p.painter()
	switch {
	case t.Replaces == 0:
		fmt.Fprintln(p.out, paint.strong(t.ID+" would be created"))
	case t.Unchanged:
		fmt.Fprintln(p.out, paint.strong(fmt.Sprintf("%s v%d has this content already", t.ID, t.Replaces)))
	default:
		fmt.Fprintln(p.out, paint.strong(fmt.Sprintf("%s v%d would become v%d", t.ID, t.Replaces, t.Replaces+1)))
	}
	return p.printChanges(t, paint)
}

// printChanges prints a line for each member that would change, and what else
// there is to know.
func (p *program) printChanges(t *trial, paint painter) error {
	table := p.table()
	for _, c := range t.Changes {
		pointer := strings.TrimPrefix(c.Pointer, "#")
		switch {
		case c.Before == nil:
			fmt.Fprintf(table, "  + %s\t%s\n", pointer, paint.added(oneLine(string(c.After))))
		case c.After == nil:
			fmt.Fprintf(table, "  - %s\t%s\n", pointer, paint.gone(oneLine(string(c.Before))))
		default:
			fmt.Fprintf(table, "  ~ %s\t%s → %s\n", pointer, paint.gone(oneLine(string(c.Before))), paint.added(oneLine(string(c.After))))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if t.Replaces > 0 && !t.Unchanged {
		fmt.Fprintf(p.out, "  balances: %s\n", t.Balances)
	}
	for _, pointer := range t.Restarts {
		fmt.Fprintf(p.out, "  %s says which state the policy keeps: all of it begins anew\n", strings.TrimPrefix(pointer, "#"))
	}
	p.warn(t.Warnings)
	return nil
}

// warn tells warnings on standard error.
func (p *program) warn(warnings []fault) {
	for _, warning := range warnings {
		fmt.Fprintln(p.err, "warning:", warning)
	}
}
