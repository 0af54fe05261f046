//go:build unix

package devpg

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// DefaultPort names the socket file and is where a client without a port
// looks. Each server has a folder of its own, so they never meet.
const DefaultPort = 5432

// socketPathBytesMax is what fits into a socket address on every system:
// macOS has 104 bytes with the final zero, Linux 108.
const socketPathBytesMax = 103

// predecessorWait bounds the wait for a server whose parent was killed and
// that is still writing its last checkpoint.
const predecessorWait = 15 * time.Second

// socketDir finds a private folder whose name leaves room for the socket's:
// home where that fits, else a temporary one, which remove removes.
func socketDir(home string, as account) (dir string, remove func(), err error) {
	if fits(home) {
		return home, func() {}, nil
	}
	for _, parent := range []string{os.TempDir(), "/tmp"} {
		if err = as.canReach(parent); err != nil {
			continue
		}
		if dir, err = os.MkdirTemp(parent, "ration-pg-"); err != nil {
			err = fmt.Errorf("make a folder for the socket: %w", err)
			continue
		}
		remove = func() { _ = os.RemoveAll(dir) } // ours alone, made just now
		if !fits(dir) {
			err = fmt.Errorf("a socket in %s would have a comma in its name or more than %d bytes; set TMPDIR to a plainer folder", dir, socketPathBytesMax)
		} else if err = as.own(dir); err == nil {
			return dir, remove, nil
		}
		remove()
	}
	return "", nil, err
}

// fits says whether a socket can be reached in a folder: its name has to be
// short, and a comma in it would make it two hosts to every client.
func fits(dir string) bool {
	return !strings.Contains(dir, ",") && len(filepath.Join(dir, ".s.PGSQL.65535")) <= socketPathBytesMax
}

// awaitPredecessor looks for a server that still works on the data although
// nobody holds the folder's lock: its parent was killed. One that is shutting
// down is waited for, one that goes on serving is an [InUseError]. A
// postmaster.pid that nobody stands behind is PostgreSQL's own to remove.
func (c *cluster) awaitPredecessor(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, predecessorWait)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		pid, sockets, port := readPostmasterPID(filepath.Join(c.data, "postmaster.pid"))
		if pid == 0 || syscall.Kill(pid, 0) == syscall.ESRCH {
			return nil
		}
		query := url.Values{"host": {sockets}, "port": {port}}
		if sockets != "" && ping(ctx, "postgres://"+Superuser+"@/postgres?"+encodeQuery(query)) == nil {
			return &InUseError{Dir: c.config.Dir, PID: pid}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil // PostgreSQL knows best whether the process is its own, and says so
		}
	}
}

// readPostmasterPID reads the process, the socket's folder and the port of
// the server that wrote the file; 0 without one.
func readPostmasterPID(path string) (pid int, sockets, port string) {
	file, err := os.Open(path)
	if err != nil {
		return 0, "", ""
	}
	defer file.Close() //nolint:errcheck // it was only read
	var lines []string
	for scanner := bufio.NewScanner(file); len(lines) < 5 && scanner.Scan(); {
		lines = append(lines, strings.TrimSpace(scanner.Text()))
	}
	lines = append(lines, make([]string, 5-len(lines))...) // a starting server has not written them all
	pid, _ = strconv.Atoi(lines[0])                        // not a number: not a server's file
	return pid, lines[4], lines[3]
}
