//go:build unix

package devpg_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/rationhq/ration/internal/devpg"
)

// parentDir makes this test binary a parent to be killed: it starts a server
// in the folder and waits.
const parentDir = "DEVPG_TEST_PARENT_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentDir); dir != "" {
		beParent(dir)
	}
	goleak.VerifyTestMain(m)
}

func beParent(dir string) {
	_, err := devpg.Start(context.Background(), devpg.Config{
		Dir: dir, BinDir: os.Getenv("RATION_PG_BIN"), Sources: []devpg.Source{devpg.Local},
	})
	fmt.Println("started:", err)
	select {}
}

// A parent that is killed takes its server along, in order: the next start
// waits for it, and finds even the unlogged tables, which a crash empties.
func TestServerEndsWithItsParent(t *testing.T) {
	t.Parallel()
	config := localConfig(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a child that its parent died")
	}
	before := start(t, config)
	query[string](t, before.URL("postgres", devpg.Superuser), `SELECT lo_create(4711)::text`)
	stop(t, before)

	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentDir+"="+config.Dir)
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || !strings.Contains(line, "started: <nil>") {
		t.Fatalf("the parent says %q (%v)", line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed, as it says

	var log strings.Builder
	config.Log = &log
	after := start(t, config)
	stop(t, after) // ends the writing to log
	if strings.Contains(log.String(), "not properly shut down") {
		t.Errorf("the server crashed with its parent instead of stopping:\n%s", log.String())
	}
}

func TestClosedFolderNamesTheMend(t *testing.T) {
	t.Parallel()
	config := localConfig(t)
	if os.Geteuid() != 0 {
		t.Skip("only root's server runs as somebody else")
	}
	if err := os.Chmod(config.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := devpg.Start(t.Context(), config)
	if err == nil || !strings.Contains(err.Error(), "chmod o+x "+config.Dir) {
		t.Errorf("the error does not say how to mend it: %v", err)
	}
}

func TestContainerSource(t *testing.T) {
	t.Parallel()
	image := os.Getenv("RATION_TEST_IMAGE")
	if testing.Short() || image == "" {
		t.Skip("starts a container of RATION_TEST_IMAGE")
	}
	dir := t.TempDir()
	t.Cleanup(func() { // after the servers' own
		if output, err := exec.Command("docker", "volume", "rm", devpg.ContainerName(dir)).CombinedOutput(); err != nil {
			t.Errorf("the volume stays behind: %s", output)
		}
	})
	server := start(t, devpg.Config{Dir: dir, Image: image, Unsafe: true, Sources: []devpg.Source{devpg.Docker}})
	url := server.URL("postgres", devpg.Superuser)
	if got := query[string](t, url, `SHOW fsync`); got != "off" {
		t.Errorf("our settings did not reach the container: fsync is %s", got)
	}
	query[string](t, url, `SELECT lo_create(4711)::text`)
	database(t, server)
	stop(t, server)
	second := start(t, devpg.Config{Dir: dir, Image: image, Unsafe: true, Sources: []devpg.Source{devpg.Docker}})
	if !query[bool](t, second.URL("postgres", devpg.Superuser), `SELECT EXISTS (SELECT FROM pg_largeobject_metadata WHERE oid = 4711)`) {
		t.Error("the second start does not have the first one's data")
	}
	database(t, second)
}

// database makes a database and a role, as a first start does and a second
// one need not, and logs in as the role.
func database(t *testing.T, server *devpg.Server) {
	t.Helper()
	for range 2 {
		if err := server.EnsureDatabase(t.Context(), "ration"); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pgx.Connect(t.Context(), server.URL("ration", devpg.Superuser))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `DO $$ BEGIN IF to_regrole('guest') IS NULL THEN CREATE ROLE guest LOGIN; END IF; END $$`); err != nil {
		t.Fatal(err)
	}
	if err := server.Admit(t.Context(), "guest"); err != nil {
		t.Fatal(err)
	}
	url := server.URL("ration", "guest")
	if got := query[string](t, url, `SELECT session_user::text || ' ' || getdatabaseencoding()`); got != "guest UTF8" {
		t.Errorf("logged in as %s", got)
	}
}
