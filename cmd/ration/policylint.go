package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rationhq/ration/policy"
)

func (p *program) policyLintCommand() *cobra.Command {
	var strict bool
	command := &cobra.Command{
		Use:   "lint FILE…",
		Short: "Check policies in files, without a service",
		Long: "Checks policies in JSON files as the service would, and says what each can mean and perhaps does not, also\n" +
			"together with the others. It needs no service and changes nothing. Exits 1 where a file has a fault,\n" +
			"or with --strict a warning.",
		Example: "  ration policy lint policies/*.json",
		Args:    cobra.MinimumNArgs(1),
	}
	command.Flags().BoolVar(&strict, "strict", false, "warnings fail too")
	form := outputFlag(command, "text, or json")
	command.RunE = func(_ *cobra.Command, arguments []string) error {
		asJSON, err := form.isJSON()
		if err != nil {
			return err
		}
		return p.lint(arguments, asJSON, strict)
	}
	return command
}

// lintResult is what there is to say of one file.
type lintResult struct {
	File     string  `json:"file"`
	Errors   []fault `json:"errors"`
	Warnings []fault `json:"warnings"`
}

func (p *program) lint(names []string, asJSON, strict bool) error {
	files := make([]policyFile, len(names))
	results := make([]lintResult, len(names))
	var all []*policy.Installed
	for i, name := range names {
		results[i] = lintResult{File: name, Errors: []fault{}, Warnings: []fault{}}
		body, err := readPolicyFile(name)
		if err != nil {
			return err
		}
		if files[i], err = parsePolicyFile(name, body); err != nil {
			results[i].Errors = lintFaults(err)
			continue
		}
		spec := files[i].change.Spec
		all = append(all, &policy.Installed{ID: files[i].id, Spec: spec, Mode: spec.Mode})
	}
	set := policy.Compile(0, all)
	faulty, warned := 0, 0
	for i := range files {
		faulty += len(results[i].Errors)
		if files[i].change == nil {
			continue
		}
		for _, w := range append(files[i].change.Warnings, set.Review(files[i].id, files[i].change.Spec)...) {
			results[i].Warnings = append(results[i].Warnings, fault{Name: string(w.Name), Pointer: "#" + w.Pointer, Detail: w.Detail})
			warned++
		}
	}
	if err := p.printLint(results, asJSON); err != nil {
		return err
	}
	if faulty > 0 || strict && warned > 0 {
		return fmt.Errorf("%d faults and %d warnings in %d files", faulty, warned, len(names))
	}
	return nil
}

// lintFaults gives the faults of a file that is no policy, or is misnamed.
func lintFaults(err error) []fault {
	if err == nil {
		return nil
	}
	refused, ok := errors.AsType[*policy.Error](err)
	if !ok {
		return []fault{{Pointer: "#", Detail: err.Error()}}
	}
	faults := make([]fault, len(refused.Faults))
	for i, f := range refused.Faults {
		faults[i] = fault{Pointer: "#" + f.Pointer, Detail: f.Detail}
	}
	return faults
}

func (p *program) printLint(results []lintResult, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(p.out).Encode(map[string]any{"files": results})
	}
	for i := range results {
		r := &results[i]
		for _, f := range r.Errors {
			fmt.Fprintf(p.out, "%s: %s\n", r.File, f)
		}
		for _, w := range r.Warnings {
			fmt.Fprintf(p.out, "%s: warning: %s\n", r.File, w)
		}
		if len(r.Errors)+len(r.Warnings) == 0 {
			fmt.Fprintf(p.out, "%s: ok\n", r.File)
		}
	}
	return nil
}
