package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command has its place in the reference, under a heading of its group.
func TestCommandsAreInTheReference(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	everyCommand(func(command *cobra.Command) {
		words := strings.Fields(command.CommandPath())
		if command.HasSubCommands() || len(words) < 2 {
			return
		}
		heading := `(?m)^### ration ` + words[1] + `\b`
		if len(words) > 2 {
			heading += `.*\b` + words[2] + `\b`
		}
		if !regexp.MustCompile(heading).Match(page) {
			t.Errorf("docs/reference/cli.md has no heading of %s", command.CommandPath())
		}
	})
}
