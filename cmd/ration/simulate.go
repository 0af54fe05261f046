package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rationhq/ration/internal/simulate"
	"github.com/rationhq/ration/internal/trace"
)

// simulateFlags are those of `simulate`.
type simulateFlags struct {
	traceFlags

	policies     []string
	svg          string
	top, keysMax int
}

func (p *program) simulateCommand() *cobra.Command {
	var flags simulateFlags
	command := &cobra.Command{
		Use:   "simulate --policy FILE --trace FILE",
		Short: "Try policies on past traffic",
		Long: "Says what policies would have done to past traffic, in the traffic's own time and without a database: how many\n" +
			"requests each would have denied, to whom, and for how long. Each policy is tried by itself, as if enforced.\n\n" +
			"A trace is CSV whose first line names the columns, or an access log of nginx or Apache (common or combined);\n" +
			"either may be gzip. A bad line is counted and passed over. A request with an earlier time than the one before it\n" +
			"is asked at its own time; no balance moves back for it.",
		Example: "  ration simulate --policy search.json --trace access.log.gz --map operations.txt\n" +
			"  ration simulate --policy a.json --policy b.json --trace calls.csv --column client=account --svg calls.svg",
		Args: cobra.NoArgs,
	}
	form := outputFlag(command, "text or json")
	command.RunE = func(*cobra.Command, []string) error {
		asJSON, err := form.isJSON()
		if err != nil {
			return err
		}
		return p.simulate(&flags, asJSON)
	}
	f := command.Flags()
	f.StringArrayVar(&flags.policies, "policy", nil, "`file` of a policy, as `policy put` takes it; once for each to try")
	flags.traceFlags.add(command)
	f.StringVar(&flags.svg, "svg", "", "`file` for a picture of what was allowed and denied over time")
	f.IntVar(&flags.top, "top", 5, "the `number` of keys to show of each policy, those denied most")
	f.IntVar(&flags.keysMax, "keys-max", 1_000_000, "the `number` of keys that a policy may have: each takes 300 bytes of memory or so")
	return command
}

// simulate tries the policies on the trace and prints what came of it.
func (p *program) simulate(flags *simulateFlags, asJSON bool) error {
	switch {
	case len(flags.policies) == 0 || flags.file == "":
		return usageError{errors.New("say what to try and on what: --policy FILE and --trace FILE")}
	case flags.top < 0 || flags.keysMax < 1:
		return usageError{errors.New("--top is at least 0 and --keys-max at least 1")}
	}
	candidates, err := p.readCandidates(flags.policies)
	if err != nil {
		return err
	}
	simulation, err := simulate.New(candidates, flags.keysMax)
	if err != nil {
		return usageError{err}
	}
	input, err := p.openTrace(flags.file)
	if err != nil {
		return err
	}
	defer input.Close() //nolint:errcheck // it was only read
	reader, err := flags.reader(input)
	if err != nil {
		return err
	}
	err = simulation.Run(reader)
	input.done()
	if err != nil {
		return fmt.Errorf("line %d: %w", reader.Lines(), err)
	}
	report := simulation.Report(reader, flags.top)
	if report.Trace.Requests == 0 {
		return noRequests(reader)
	}
	return p.tell(report, flags.svg, asJSON)
}

// noRequests is for a trace that has nothing to try policies on.
func noRequests(reader *trace.Reader) error {
	if reader.Faults.Count == 0 {
		return errors.New("the trace has no request")
	}
	first := reader.Faults.First[0]
	return fmt.Errorf("the trace has no request in %d lines: line %d %s", reader.Lines(), first.Line, first.Reason)
}

// tell prints the report and draws the picture, where one is wanted.
func (p *program) tell(report *simulate.Report, picture string, asJSON bool) error {
	if picture != "" {
		if err := writePicture(report, picture); err != nil {
			return err
		}
	}
	if asJSON {
		return json.NewEncoder(p.out).Encode(report)
	}
	return p.printReport(report)
}

func writePicture(report *simulate.Report, path string) error {
	file, err := os.Create(path) //nolint:gosec // the caller's own file, by the caller's own word
	if err != nil {
		return err
	}
	return errors.Join(report.WriteSVG(file), file.Close())
}
