//go:build unix

package devpg_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/internal/devpg"
	"github.com/rationhq/ration/internal/skip"
)

// localConfig is a configuration in a folder of the test's own, or a skip
// where there is no PostgreSQL to test with.
func localConfig(t *testing.T) devpg.Config {
	t.Helper()
	skip.WithoutBinaries(t)
	// Not t.TempDir: its parents are closed to the user that root's server
	// runs as.
	dir, err := os.MkdirTemp("", "devpg-test-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return devpg.Config{
		Dir: dir, BinDir: os.Getenv("RATION_PG_BIN"), Unsafe: true,
		Sources: []devpg.Source{devpg.Local},
	}
}

func start(t *testing.T, config devpg.Config) *devpg.Server {
	t.Helper()
	server, err := devpg.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, server) })
	return server
}

func stop(t *testing.T, server *devpg.Server) {
	t.Helper()
	if err := server.Stop(context.Background()); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func query[T any](t *testing.T, url, sql string) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestSecondStartReusesTheData(t *testing.T) {
	t.Parallel()
	config := localConfig(t)
	first := start(t, config)
	query[string](t, first.URL("postgres", devpg.Superuser), `SELECT lo_create(4711)::text`)
	database(t, first)
	stop(t, first)
	second := start(t, config)
	database(t, second)
	if !query[bool](t, second.URL("postgres", devpg.Superuser), `SELECT EXISTS (SELECT FROM pg_largeobject_metadata WHERE oid = 4711)`) {
		t.Error("the second start does not have the first one's data")
	}
}

func TestUnsafeIsOnlyByRequest(t *testing.T) {
	t.Parallel()
	config := localConfig(t)
	config.Unsafe = false
	config.Settings = map[string]string{"work_mem": "7MB"}
	url := start(t, config).URL("postgres", devpg.Superuser)
	if got := query[string](t, url, `SHOW fsync`); got != "on" {
		t.Errorf("fsync is %s", got)
	}
	if got := query[string](t, url, `SHOW work_mem`); got != "7MB" {
		t.Errorf("a caller's setting is %s, not what it asked for", got)
	}
	if got := query[string](t, url, `SHOW listen_addresses`); got != "" {
		t.Errorf("listens on %q although nobody asked for TCP", got)
	}
	if got := query[string](t, url, `SELECT current_setting('server_encoding')`); got != "UTF8" {
		t.Errorf("encoding is %s", got)
	}
}

func TestFolderInUse(t *testing.T) {
	t.Parallel()
	config := localConfig(t)
	start(t, config)
	_, err := devpg.Start(t.Context(), config)
	if inUse := (*devpg.InUseError)(nil); !errors.As(err, &inUse) {
		t.Fatalf("a second server over the same folder: %v", err)
	}
}

func TestStopRemovesWhatItMade(t *testing.T) {
	t.Parallel()
	config := localConfig(t)
	config.Dir = filepath.Join(config.Dir, strings.Repeat("d", 100)) // no room for a socket in there
	server := start(t, config)
	url := server.URL("postgres", devpg.Superuser)
	pid := query[int](t, url, `SELECT pg_backend_pid()`)
	sockets := query[string](t, url, `SHOW unix_socket_directories`)
	if socket := filepath.Join(sockets, ".s.PGSQL.5432"); len(socket) > 103 {
		t.Errorf("socket name %s is too long for macOS", socket)
	}
	stop(t, server)
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("backend %d still runs: %v", pid, err)
	}
	if _, err := os.Stat(sockets); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket folder %s is still there: %v", sockets, err)
	}
	select {
	case <-server.Done():
	default:
		t.Error("stopped, and Done is open")
	}
}

// Clients differ in what a + in a URL's query is: libpq takes it literally.
func TestFolderOfAnyName(t *testing.T) {
	t.Parallel()
	within := localConfig(t)
	for _, name := range []string{"a b+c", "%20&'=?#ü", "a,b"} {
		config := within
		config.Dir = filepath.Join(within.Dir, name)
		server := start(t, config)
		address := server.URL("postgres", devpg.Superuser)
		sockets := query[string](t, address, `SHOW unix_socket_directories`)
		parsed, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		for parameter := range strings.SplitSeq(parsed.RawQuery, "&") {
			if host, found := strings.CutPrefix(parameter, "host="); found {
				if read, err := url.PathUnescape(host); err != nil || read != sockets {
					t.Errorf("%s: libpq reads the host %q (%v), the server's is %q", name, read, err, sockets)
				}
			}
		}
		stop(t, server)
	}
}

func TestStalePidFile(t *testing.T) {
	t.Parallel()
	config := localConfig(t)
	stop(t, start(t, config))
	// The largest pid that Linux gives out is below 2^22: nobody's.
	stale := "4194304\n" + config.Dir + "\n0\n5432\n/nowhere\n\n"
	if err := os.WriteFile(filepath.Join(config.Dir, "postgres", "data", "postmaster.pid"), []byte(stale), 0o644); err != nil {
		t.Fatal(err)
	}
	start(t, config)
}

func TestBrokenSourceIsToldNotSkipped(t *testing.T) {
	t.Parallel()
	config := localConfig(t)
	config.Settings = map[string]string{"no_such_setting": "1"}
	_, err := devpg.Start(t.Context(), config)
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Fatalf("the error does not repeat PostgreSQL's own words: %v", err)
	}
}
