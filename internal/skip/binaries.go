package skip

import (
	"os"
	"testing"

	"github.com/rationhq/ration/internal/devpg"
)

// WithoutBinaries skips a test that starts PostgreSQL from the binaries on this
// machine (RATION_PG_BIN, else looked for) where there are none, and with
// -short.
func WithoutBinaries(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts PostgreSQL")
	}
	found, err := devpg.Find(t.Context(), os.Getenv("RATION_PG_BIN"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		Because(t, "needs PostgreSQL's binaries on this machine")
	}
}
