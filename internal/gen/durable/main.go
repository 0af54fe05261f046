// Command durable writes the functions that decide on logged tables from
// those that decide on unlogged ones. The two differ in a table's name and in
// how they commit; everything else has to stay the same for ever, and nobody
// should have to compare.
//
// In a source, `-- durable: <sql>` is a line of the durable function.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . ../../../sql/functions

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "durable:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("usage: durable FOLDER (of the functions), not %q", arguments)
	}
	for _, source := range sources {
		text, err := os.ReadFile(filepath.Join(arguments[0], source.fast+".sql")) //nolint:gosec // the folder that the author of the go:generate line named
		if err != nil {
			return fmt.Errorf("read the fast function: %w", err)
		}
		generated, err := durable(string(text), source.fast)
		if err != nil {
			return fmt.Errorf("%s.sql: %w", source.fast, err)
		}
		target := filepath.Join(arguments[0], source.durable+".sql")
		if err := os.WriteFile(target, []byte(generated), 0o644); err != nil { //nolint:gosec // a source file, like its neighbours
			return fmt.Errorf("write the durable function: %w", err)
		}
	}
	return nil
}
