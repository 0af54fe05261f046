package main

import (
	"fmt"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// environmentNote is the annotation that holds the variables a command reads.
const environmentNote = "environment"

// usageTemplate is cobra's without what every command has alike.
const usageTemplate = `Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND{{else}}{{.UseLine}}{{end}}
{{- if .HasExample}}

Examples:
{{.Example}}{{end}}
{{- if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}

"{{.CommandPath}} COMMAND --help" has more on each.{{end}}
{{- if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
{{- with index .Annotations "environment"}}

Environment:
{{. | trimTrailingWhitespaces}}{{end}}
`

// tidyHelp leaves out of every command's help what says nothing.
func tidyHelp(command *cobra.Command) {
	command.DisableFlagsInUseLine = true
	command.InitDefaultHelpFlag()
	command.Flags().Lookup("help").Hidden = true
	for _, inner := range command.Commands() {
		tidyHelp(inner)
	}
}

// reads notes the variables of configurations in a command's help.
func reads(command *cobra.Command, configurations ...any) *cobra.Command {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, configuration := range configurations {
		writeVariables(table, reflect.TypeOf(configuration))
	}
	_ = table.Flush() // into memory
	command.Annotations = map[string]string{environmentNote: text.String()}
	return command
}

// writeVariables writes a line for each field that a variable fills, with what
// its `help` tag says and its default.
func writeVariables(table *tabwriter.Writer, of reflect.Type) {
	for field := range of.Fields() {
		variable, known := field.Tag.Lookup("env")
		if !known {
			writeVariables(table, field.Type)
			continue
		}
		fmt.Fprintf(table, "  %s\t%s", variable, field.Tag.Get("help"))
		if preset, ok := field.Tag.Lookup("envDefault"); ok {
			fmt.Fprintf(table, " (%s)", preset)
		}
		fmt.Fprintln(table)
	}
}
