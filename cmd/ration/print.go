package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"
)

// printForm is the form of what a command prints.
type printForm string

// outputFlag adds the choice of it to a command.
func outputFlag(command *cobra.Command, forms string) *printForm {
	form := command.Flags().StringP("output", "o", "text", "`form` of what is printed: "+forms)
	return (*printForm)(form)
}

// isJSON says whether programs read it.
func (o *printForm) isJSON() (bool, error) {
	if *o != "text" && *o != "json" {
		return false, usageError{fmt.Errorf("--output %q: it is text or json", *o)}
	}
	return *o == "json", nil
}

// table lines up what is written to it, a line each, a tab between two cells.
func (p *program) table() *tabwriter.Writer { return tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0) }

// printRaw prints JSON as the service answered it.
func (p *program) printRaw(raw json.RawMessage) error {
	_, err := fmt.Fprintf(p.out, "%s\n", raw)
	return err
}

// printAll prints what all pages list as one page.
func (p *program) printAll(member string, all []json.RawMessage) error {
	if all == nil {
		all = []json.RawMessage{} // none is [], not null
	}
	return json.NewEncoder(p.out).Encode(map[string]any{member: all})
}

// rowsDefault is how many rows of a list are printed where nothing is said of
// it: a screen or two.
const rowsDefault = 50

// checkRows refuses to print no row of a list.
func checkRows(rows int) error {
	if rows < 1 {
		return usageError{fmt.Errorf("--rows %d: at least 1", rows)}
	}
	return nil
}

// oneLine keeps text that others wrote within its line of a table.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) { // also what turns the direction of text round
			return ' '
		}
		return r
	}, text)
}
