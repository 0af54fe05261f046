// Package skip leaves out tests that need something this machine lacks, and
// says so where somebody reads it.
package skip

import (
	"fmt"
	"os"
	"testing"
)

// Because skips the test. `go test ./...` hides what passing packages print,
// so the reason also goes to the terminal, where there is one.
func Because(t testing.TB, reason string) {
	t.Helper()
	if terminal, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0); err == nil {
		_, _ = fmt.Fprintf(terminal, "skipped %s: %s\n", t.Name(), reason) // the log below has it too
		_ = terminal.Close()
	}
	t.Skip(reason)
}
