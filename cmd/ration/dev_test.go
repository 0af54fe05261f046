package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/internal/devpg"
	"github.com/rationhq/ration/internal/skip"
)

// A second start goes on with what the first one left.
func TestDevTwice(t *testing.T) {
	t.Parallel()
	dir := devFolder(t)
	environ := []string{"RATION_DEV_DIR=" + dir, "RATION_PG_BIN=" + os.Getenv("RATION_PG_BIN")}
	t.Run("first", func(t *testing.T) {
		i := start(t, environ, "dev")
		first := i.mustAsk(t, `{"verifiedAccount":"A","operation":"report.create","cost":5,"policyVersion":1}`)
		if !first.Allowed || first.Remaining != 35 {
			t.Errorf("the first call is answered %+v", first)
		}
		if !i.mustAsk(t, request("report.read", "A")).Allowed {
			t.Error("a read is denied")
		}
		i.put(t, "report-read", slow("report.read", 3, ""), 1)
		// The folder is in use: said, and nothing is broken by it.
		code, _, errs := command(t, append(anyPort(), environ...), "", "dev")
		if code != exitFailed || !strings.Contains(errs, "RATION_DEV_DIR") {
			t.Errorf("a second one in the same folder: %d %s", code, errs)
		}
	})
	t.Run("second", func(t *testing.T) {
		i := start(t, environ, "dev")
		if a := i.mustAsk(t, request("report.read", "B")); a.PolicyVersion != 2 || a.Remaining != 2 {
			t.Errorf("what was made of an example is gone: %+v", a)
		}
	})
}

// A server of somebody's own is used as it is.
func TestDevOnADatabase(t *testing.T) {
	t.Parallel()
	i := start(t, []string{"RATION_DATABASE_URL=" + dbtest.Empty(t).OwnerURL()}, "dev")
	if a := i.mustAsk(t, request("report.create", "A")); a.Remaining != 35 {
		t.Errorf("the first call is answered %+v", a)
	}
}

// devFolder is a folder for a private server, or the reason to skip.
func devFolder(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs PostgreSQL")
	}
	found, err := devpg.Find(t.Context(), os.Getenv("RATION_PG_BIN"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		skip.Because(t, "needs PostgreSQL's binaries on this machine")
	}
	// Not t.TempDir, which only its owner can enter: root's server runs as somebody else.
	dir, err := os.MkdirTemp("", "ration-dev-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })  // a temporary folder
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the server's folder inside is the private one
		t.Fatal(err)
	}
	return dir
}
