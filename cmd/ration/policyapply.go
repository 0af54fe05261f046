package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// applyFlags are those of `policy apply`.
type applyFlags struct {
	prune, yes, plan, exitCode bool
	reason                     string
}

func (p *program) policyApplyCommand() *cobra.Command {
	var flags applyFlags
	command := p.overAdmin(&cobra.Command{
		Use:   "apply DIR",
		Short: "Bring the policies in force to what a folder has",
		Long: "Brings the policies in force to what the JSON files of a folder have; a file's name, without .json, is its policy's id.\n" +
			"It reads and tries everything first and prints the plan: what would be created, changed, left and, with --prune,\n" +
			"deleted, with what becomes of balances. Then it asks, on a terminal, and wants --yes elsewhere. Each change is made\n" +
			"only if the version in force is still the one that the plan saw. It stops at the first that fails and says\n" +
			"what was done; doing it again does the rest.",
		Example: "  ration policy apply policies --plan\n  ration policy apply policies --prune --yes --reason 'release 7'",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		return p.apply(ctx, api, arguments[0], flags, asJSON)
	})
	set := command.Flags()
	set.BoolVar(&flags.prune, "prune", false, "delete the policies that the folder does not have")
	set.BoolVarP(&flags.yes, "yes", "y", false, "do not ask")
	set.BoolVar(&flags.plan, "plan", false, "print the plan, and change nothing")
	set.BoolVar(&flags.exitCode, "exit-code", false, fmt.Sprintf("with --plan, exit %d when there is something to do", exitDiffers))
	set.StringVar(&flags.reason, "reason", "", "`reason` for the audit, in place of the files' own")
	return command
}

func (p *program) apply(ctx context.Context, api *adminAPI, folder string, flags applyFlags, asJSON bool) error {
	files, err := readPolicyFolder(folder)
	if err != nil {
		return err
	}
	if flags.prune && len(files) == 0 {
		return usageError{fmt.Errorf("%s has no policy, and --prune would delete all there are", folder)}
	}
	steps, err := api.planOf(ctx, files, flags)
	if err != nil {
		return err
	}
	if !asJSON {
		if err := p.printPlan(steps, flags.prune); err != nil {
			return err
		}
	}
	switch work := steps.work(); {
	case flags.plan || work == 0:
		if asJSON {
			err = p.printApplied(steps)
		}
		if flags.plan && flags.exitCode && work > 0 {
			err = errors.Join(err, errDiffers)
		}
		return err
	case !flags.yes:
		if agreed, err := p.ask("Apply this?"); err != nil || !agreed {
			return err
		}
	}
	err = p.carryOut(ctx, api, steps, asJSON)
	if asJSON {
		return errors.Join(p.printApplied(steps), err)
	}
	return err
}

// ask asks a person on a terminal; elsewhere nobody would answer.
func (p *program) ask(question string) (agreed bool, err error) {
	if !isTerminal(p.in) {
		return false, usageError{errors.New("there is nobody to ask: say --yes to change this, or --plan to only print it")}
	}
	fmt.Fprintf(p.err, "%s [y/N] ", question)
	line, err := bufio.NewReader(p.in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	if agreed = answer == "y" || answer == "yes"; !agreed {
		fmt.Fprintln(p.err, "nothing was changed")
		return false, nil
	}
	return agreed, err
}

// carryOut makes the plan's changes one after the other, up to the first that
// fails.
func (p *program) carryOut(ctx context.Context, api *adminAPI, steps plan, asJSON bool) error {
	for i := range steps {
		step := &steps[i]
		if step.Action == planKeep || step.Action == planLeave {
			continue
		}
		made, err := step.carryOut(ctx, api)
		if err != nil {
			return fmt.Errorf("%s %s: %w\n%s", step.Action, step.ID, err, steps.progress())
		}
		step.Done = made.Version
		if !asJSON {
			fmt.Fprintf(p.out, "%s v%d %sd\n", step.ID, made.Version, step.Action)
		}
	}
	return nil
}

// printApplied prints a plan, and how far it was carried out, for programs.
func (p *program) printApplied(steps plan) error {
	return json.NewEncoder(p.out).Encode(map[string]any{"steps": steps})
}
