package main

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/internal/skip"
)

// A second start goes on with what the first one left.
func TestDevTwice(t *testing.T) {
	t.Parallel()
	dir := devFolder(t)
	environ := []string{"RATION_DEV_DIR=" + dir, "RATION_PG_BIN=" + os.Getenv("RATION_PG_BIN")}
	first := start(t, environ, "dev")
	if remaining := first.peek(t, "report.create"); remaining != 40 {
		t.Errorf("a fresh account may create %d tokens' worth of reports", remaining)
	}
	if remaining := first.peek(t, "report.read"); remaining != 100 {
		t.Errorf("a fresh account may read %d reports", remaining)
	}
	first.put(t, "report-read", `{"match": {"operations": ["report.read"]}, "per": ["account", "operation"],
		"limit": {"algorithm": "token_bucket", "capacity": 3, "refillTokens": 1, "refillSeconds": 3600}}`, 1)
	// The folder is in use: said, and nothing is broken by it.
	code, _, errs := command(t, append(anyPort(), environ...), "", "dev")
	if code != exitFailed || !strings.Contains(errs, "RATION_DEV_DIR") {
		t.Errorf("a second one in the same folder: %d %s", code, errs)
	}
	first.stop()

	second := start(t, environ, "dev")
	if remaining := second.peek(t, "report.read"); remaining != 3 {
		t.Errorf("what was made of an example is gone: %d remain", remaining)
	}
}

// A server of somebody's own is used as it is.
func TestDevOnADatabase(t *testing.T) {
	t.Parallel()
	i := start(t, []string{"RATION_DATABASE_URL=" + dbtest.Empty(t).OwnerURL()}, "dev")
	if remaining := i.peek(t, "report.create"); remaining != 40 {
		t.Errorf("a fresh account may create %d tokens' worth of reports", remaining)
	}
}

// peek gives what remains of a fresh account. It takes nothing, so that it can
// be repeated where the usual bounds of a call are short for a busy machine.
func (i *instance) peek(t *testing.T, operation string) int64 {
	t.Helper()
	var a answer
	eventually(t, operation+" is decided", func() bool {
		var err error
		a, err = i.ask(`{"verifiedAccount":"fresh","peek":true,"operation":"` + operation + `"}`)
		if err != nil {
			t.Fatal(err)
		}
		return a.Status == http.StatusOK
	})
	return a.Remaining
}

// devFolder is a folder for a private server, or the reason to skip.
func devFolder(t *testing.T) string {
	t.Helper()
	skip.WithoutBinaries(t)
	// Not t.TempDir, which only its owner can enter: root's server runs as somebody else.
	dir, err := os.MkdirTemp("", "ration-dev-test-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a temporary folder
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
