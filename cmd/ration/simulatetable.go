package main

import (
	"fmt"
	"time"

	"github.com/rationhq/ration/internal/simulate"
)

// printReport prints what was tried, a line for each policy, and the keys that
// each denied most.
func (p *program) printReport(report *simulate.Report) error {
	trace := &report.Trace
	fmt.Fprintf(p.out, "%s requests, %s to %s UTC\n", simulate.Grouped(trace.Requests), trace.From.Format(time.DateTime), trace.To.Format(time.DateTime))
	if trace.OutOfOrder > 0 {
		fmt.Fprintf(p.out, "%s requests are earlier than one before them\n", simulate.Grouped(trace.OutOfOrder))
	}
	if trace.BadLines > 0 {
		fmt.Fprintf(p.out, "%s lines are no requests:\n", simulate.Grouped(int64(trace.BadLines)))
		for _, bad := range trace.FirstBad {
			fmt.Fprintf(p.out, "  line %d %s\n", bad.Line, bad.Reason)
		}
		if more := trace.BadLines - len(trace.FirstBad); more > 0 {
			fmt.Fprintf(p.out, "  and %s more\n", simulate.Grouped(int64(more)))
		}
	}
	fmt.Fprintln(p.out)
	if err := p.printOutcomes(report.Policies); err != nil {
		return err
	}
	for i := range report.Policies {
		if err := p.printWorstKeys(&report.Policies[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) printOutcomes(policies []simulate.Outcome) error {
	table := p.table()
	fmt.Fprintln(table, "POLICY\tCHECKED\tALLOWED\tDENIED\tSHARE\tKEYS\tDENIED KEYS\tWORST WAIT\tPEAK SECOND")
	for i := range policies {
		o := &policies[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", o.Policy,
			simulate.Grouped(o.Checked), simulate.Grouped(o.Allowed), simulate.Grouped(o.Denied), simulate.Percent(o.DeniedShare),
			simulate.Grouped(int64(o.Keys)), simulate.Grouped(int64(o.KeysDenied)), waitText(o.WorstWait), peakText(o.Peak))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range policies {
		o := &policies[i]
		for _, passed := range []struct {
			count int64
			why   string
		}{
			{o.Unmatched, "does not match"},
			{o.Missing, "passes over, as they lack an attribute of its key"},
			{o.Refused, "refuses, as they lack an attribute that it requires or state a cost that it does not take"},
		} {
			if passed.count > 0 {
				fmt.Fprintf(p.out, "%s %s: %s requests\n", o.Policy, passed.why, simulate.Grouped(passed.count))
			}
		}
	}
	return nil
}

// printWorstKeys prints the keys that a policy denied most.
func (p *program) printWorstKeys(o *simulate.Outcome) error {
	if len(o.WorstKeys) == 0 {
		return nil
	}
	fmt.Fprintf(p.out, "\n%s (%s) denied most:\n", o.Policy, o.Limit)
	table := p.table()
	fmt.Fprintln(table, "  KEY\tALLOWED\tDENIED\tWORST WAIT\tFIRST DENIED (UTC)")
	for _, key := range o.WorstKeys {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\n", key.Key,
			simulate.Grouped(key.Allowed), simulate.Grouped(key.Denied), waitText(key.WorstWait), key.FirstDenied.Format(time.DateTime))
	}
	return table.Flush()
}

// waitText writes the longest wait that a denial advised.
func waitText(wait simulate.Wait) string {
	switch {
	case wait.Never:
		return "never"
	case wait.Millis == 0:
		return "-"
	}
	return (time.Duration(wait.Millis) * time.Millisecond).String()
}

// peakText writes the second in which most was allowed.
func peakText(peak simulate.Peak) string {
	if peak.Allowed == 0 {
		return "-"
	}
	return fmt.Sprintf("%s at %s", simulate.Grouped(peak.Allowed), peak.At.Format(time.DateTime))
}
