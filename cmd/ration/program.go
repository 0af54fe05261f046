package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2 // called or configured wrongly: nothing was begun
	exitDiffers = 3 // asked by --exit-code: something would change

	exitWarnings = 4 // of `ration doctor`: what may bite
	exitFaults   = 5 // what bites already
)

// stdio is what a program reads from and writes to.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// program is one run of the command line.
type program struct {
	stdio

	environment environment
}

// usageError is a call that can never work as it stands.
type usageError struct{ error }

// Unwrap gives what is wrong with the call.
func (e usageError) Unwrap() error { return e.error }

// run runs one command line to its end, or until ctx asks it to end, and gives
// the exit code. environ is as of os.Environ.
func run(ctx context.Context, arguments, environ []string, streams stdio) int {
	p := &program{stdio: streams, environment: newEnvironment(environ)}
	begun := false
	root := p.root(&begun) //nolint:contextcheck // commands get theirs from cobra, below
	root.SetArgs(arguments)
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	if errors.Is(err, errDiffers) { // that was the question
		return exitDiffers
	}
	if found, ok := errors.AsType[verdict](err); ok {
		return int(found)
	}
	fmt.Fprintln(p.err, "ration:", err)
	if !begun { // cobra refused the command line itself
		fmt.Fprintf(p.err, "See `%s --help`.\n", command.CommandPath())
		return exitUsage
	}
	if _, misuse := errors.AsType[usageError](err); misuse {
		return exitUsage
	}
	return exitFailed
}

// root is the command line's grammar. It sets begun when a command begins.
func (p *program) root(begun *bool) *cobra.Command {
	root := &cobra.Command{
		Use:   "ration",
		Short: "A rate limiter that lives in PostgreSQL",
		Long: "Ration is a rate limiter that lives in PostgreSQL: a gateway asks before it spends anything on a request,\n" +
			"one stored function refills, compares and takes, and the answer says allowed, or denied and how long to wait.\n\n" +
			"Begin with `ration dev`. Everything is configured by the environment, as each command's help says.\n" +
			"Exit codes: 0 done, 1 failed, 2 called or configured wrongly, 3 something would change, where --exit-code asks for\n" +
			"that; of doctor also 4 warnings, 5 faults.",
		SilenceErrors:    true, // told by run, once
		SilenceUsage:     true, // a page of flags hides the sentence that matters
		PersistentPreRun: func(*cobra.Command, []string) { *begun = true },
	}
	root.SetUsageTemplate(usageTemplate)
	root.AddCommand(
		p.devCommand(), p.serveCommand(), p.migrateCommand(), p.policyCommand(), p.bucketCommand(), p.overrideCommand(), p.killSwitchCommand(),
		p.tokenCommand(), p.auditCommand(), p.doctorCommand(), p.simulateCommand(), p.healthCommand(), p.versionCommand(),
	)
	tidyHelp(root)
	return root
}

// group makes a command that only holds others: alone it prints its help, and
// a word that is none of them is refused.
func group(command *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	command.AddCommand(commands...)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if len(arguments) == 0 {
			return command.Help()
		}
		var known []string
		for _, one := range commands {
			known = append(known, one.Name())
		}
		return usageError{fmt.Errorf("%s has no command %q; it has %s", command.CommandPath(), arguments[0], strings.Join(known, ", "))}
	}
	return command
}
