package dbtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// makeFolder makes a folder for a server. One that is to be removed is named
// after this process, so that what a killed test binary had to leave behind is
// removed by the next one.
func makeFolder(keep bool) (string, error) {
	if keep {
		return openFolder("ration-kept-")
	}
	leftovers, _ := filepath.Glob(filepath.Join(os.TempDir(), "ration-test-*")) // fails on a malformed pattern only
	for _, dir := range leftovers {
		text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), "ration-test-"), "-")
		if pid, err := strconv.Atoi(text); err == nil && hasEnded(pid) {
			_ = os.RemoveAll(dir) // somebody else's, or being removed: not our concern
		}
	}
	return openFolder(fmt.Sprintf("ration-test-%d-", os.Getpid()))
}

// hasEnded says whether no process has the number.
func hasEnded(pid int) bool {
	process, err := os.FindProcess(pid)
	return err != nil || errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// openFolder makes a temporary folder that others may pass through, because
// root's server runs as somebody else. Not testing.T's: that one is closed.
func openFolder(prefix string) (string, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", fmt.Errorf("make a folder for the server: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the server's folder inside is the private one
		return "", fmt.Errorf("open the server's folder: %w", err)
	}
	return dir, nil
}
