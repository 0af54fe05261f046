package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand calls look with each command of the program.
func everyCommand(look func(command *cobra.Command)) {
	var begun bool
	var walk func(command *cobra.Command)
	walk = func(command *cobra.Command) {
		look(command)
		for _, inner := range command.Commands() {
			walk(inner)
		}
	}
	walk((&program{environment: environment{}}).root(&begun))
}

// Help is read on terminals: its paragraphs are broken for them.
func TestHelpIsBrokenIntoLines(t *testing.T) {
	t.Parallel()
	const most = 120
	everyCommand(func(command *cobra.Command) {
		for line := range strings.Lines(command.Long + "\n" + command.Example) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > most {
				t.Errorf("help of %s: a line of %d characters, at most %d: %s", command.CommandPath(), n, most, line)
			}
		}
	})
}

// A flag's value has a name that says what it is, where Go's type would stand
// otherwise.
func TestFlagsNameTheirValues(t *testing.T) {
	t.Parallel()
	everyCommand(func(command *cobra.Command) {
		command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			name, _ := pflag.UnquoteUsage(flag)
			if flag.Value.Type() != "bool" && (name == "" || strings.Contains(name, " ") || !strings.Contains(flag.Usage, "`"+name+"`")) {
				t.Errorf("%s --%s %s: the usage names no value in backquotes", command.CommandPath(), flag.Name, name)
			}
		})
	})
}
