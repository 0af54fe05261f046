package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rationhq/ration/internal/simulate"
	"github.com/rationhq/ration/internal/trace"
)

// traceFlags say how a trace is read.
type traceFlags struct {
	file, format      string
	columns, defaults []string
	time, since       string
	mapping           string
}

func (f *traceFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.file, "trace", "", "`file` of past traffic (-: standard input)")
	flags.StringVar(&f.format, "format", "", "`form` of the trace: csv, or access for an access log (csv where the file is named so)")
	flags.StringArrayVar(&f.columns, "column", nil,
		"what a CSV column is, as `NAME=WHAT`: time, cost or an attribute such as account; columns so named need none")
	flags.StringVar(&f.time, "time", "rfc3339", "`form` of a CSV's time: rfc3339, seconds, millis or micros")
	flags.StringVar(&f.since, "since", "1970-01-01T00:00:00Z", "the `instant` that numbers of a CSV's time count from")
	flags.StringVar(&f.mapping, "map", "", "`file` with a line `METHOD PATH OPERATION` for each operation of an access log (else http.get and so on)")
	flags.StringArrayVar(&f.defaults, "default", nil, "what a request has that does not say, as `ATTRIBUTE=VALUE`, such as plan=standard")
}

// reader gives a reader of a trace.
func (f *traceFlags) reader(input io.Reader) (*trace.Reader, error) {
	var defaults trace.Defaults
	for _, pair := range f.defaults {
		name, value, _ := strings.Cut(pair, "=")
		if err := defaults.Set(name, value); err != nil {
			return nil, usageError{fmt.Errorf("--default %s: %w", pair, err)}
		}
	}
	isCSV := strings.HasSuffix(strings.TrimSuffix(f.file, ".gz"), ".csv")
	switch {
	case f.format == "csv" || f.format == "" && isCSV:
		return f.csv(input, defaults)
	case f.format == "access" || f.format == "":
		return f.access(input, defaults)
	}
	return nil, usageError{fmt.Errorf("--format %q: it is csv or access", f.format)}
}

func (f *traceFlags) csv(input io.Reader, defaults trace.Defaults) (*trace.Reader, error) {
	since, err := time.Parse(time.RFC3339, f.since)
	if err != nil {
		return nil, usageError{fmt.Errorf("--since %q is not of the form 2006-01-02T15:04:05Z", f.since)}
	}
	form, err := trace.ParseTimeForm(f.time, since)
	if err != nil {
		return nil, usageError{fmt.Errorf("--time %w", err)}
	}
	if f.mapping != "" {
		return nil, usageError{errors.New("--map is for access logs; a CSV has a column for the operation")}
	}
	columns := map[string]string{}
	for _, pair := range f.columns {
		name, what, said := cutLast(pair, "=")
		if !said {
			return nil, usageError{fmt.Errorf("--column %s: say NAME=WHAT", pair)}
		}
		columns[name] = what
	}
	return trace.CSV(input, columns, form, defaults)
}

func (f *traceFlags) access(input io.Reader, defaults trace.Defaults) (*trace.Reader, error) {
	if len(f.columns) > 0 {
		return nil, usageError{errors.New("--column is for CSV; say --format csv where the file is not named so")}
	}
	var operations trace.Operations
	if f.mapping != "" {
		file, err := os.Open(f.mapping)
		if err != nil {
			return nil, err
		}
		defer file.Close() //nolint:errcheck // it was only read
		if operations, err = trace.ParseOperations(file); err != nil {
			return nil, err
		}
	}
	return trace.AccessLog(input, operations, defaults)
}

// cutLast cuts at the last separator: a column's name may hold any.
func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}

// readCandidates reads the policies to try. Each is named by its file.
func (p *program) readCandidates(files []string) ([]simulate.Candidate, error) {
	var candidates []simulate.Candidate
	named := map[string]string{}
	for _, file := range files {
		body, err := p.readPolicy(file)
		if err != nil {
			return nil, err
		}
		change, err := parsePolicy(body)
		if err != nil {
			return nil, fileFaults(file, err)
		}
		name := policyFileID(file)
		if other := named[name]; other != "" {
			return nil, usageError{fmt.Errorf("%s and %s cannot be told apart by name", other, file)}
		}
		named[name] = file
		for _, warning := range change.Warnings {
			fmt.Fprintf(p.err, "%s: warning %s: %s %s\n", name, warning.Name, warning.Pointer, warning.Detail)
		}
		candidates = append(candidates, simulate.Candidate{Name: name, Spec: change.Spec})
	}
	return candidates, nil
}

// openTrace opens a trace; of a long file progress is told.
func (p *program) openTrace(file string) (*progress, error) {
	if file == "-" {
		return &progress{Reader: p.in}, nil
	}
	opened, err := os.Open(file) //nolint:gosec // the caller's own file, by the caller's own word
	if err != nil {
		return nil, err
	}
	return newProgress(opened, p.err), nil
}
