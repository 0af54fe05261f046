package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"

	"github.com/rationhq/ration/internal/devpg"
	"github.com/rationhq/ration/internal/skip"
)

// rolePassword is what [ServiceRole] logs in with on a test server that wants
// passwords. The role is the server's, so every binary has to use the same.
const rolePassword = "ration-test"

// server is a PostgreSQL that tests create databases on.
type server struct {
	adminURL string // of the database that others are created from, for their owner
	stop     func(context.Context) error

	outlives    bool   // it goes on when the tests have ended
	keepsFolder bool   // it ends, and its data stays
	container   bool   // it is one
	data        string // its data folder, "" when it is not ours

	once         sync.Once
	templateName string
	templateErr  error
}

// absent says why this machine has no server to test on. It is a reason to
// skip; a server that is there and does not start is one to fail.
type absent struct{ error }

// findServer starts or finds the server.
func findServer(ctx context.Context) (*server, error) {
	if os.Getenv("RATION_TEST_CONTAINER") != "" {
		return startContainer(ctx)
	}
	if address := os.Getenv("RATION_TEST_DATABASE_URL"); address != "" {
		if _, err := url.Parse(address); err != nil {
			return nil, fmt.Errorf("RATION_TEST_DATABASE_URL has to be a URL: %w", err)
		}
		return &server{adminURL: address, outlives: true, stop: func(context.Context) error { return nil }}, nil
	}
	found, err := devpg.Find(ctx, os.Getenv("RATION_PG_BIN"))
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		s, _, err := startLocal(ctx, nil)
		return s, err
	}
	s, err := startContainer(ctx)
	if err != nil {
		return nil, absent{fmt.Errorf("no RATION_TEST_DATABASE_URL, no PostgreSQL binaries, and no container: %w", err)}
	}
	return s, nil
}

// startLocal starts a server in a folder of its own.
func startLocal(ctx context.Context, settings map[string]string) (*server, *devpg.Server, error) {
	keep := os.Getenv("RATION_TEST_KEEP") != ""
	dir, err := makeFolder(keep)
	if err != nil {
		return nil, nil, err
	}
	remove := func() error {
		if keep {
			return nil
		}
		return os.RemoveAll(dir)
	}
	running, err := devpg.Start(ctx, devpg.Config{
		Dir:      dir,
		BinDir:   os.Getenv("RATION_PG_BIN"),
		Settings: settings,
		Unsafe:   true,
		Sources:  []devpg.Source{devpg.Local},
	})
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return &server{
		adminURL:    running.URL("postgres", devpg.Superuser),
		keepsFolder: keep,
		data:        devpg.DataDir(dir),
		stop:        func(ctx context.Context) error { return errors.Join(running.Stop(ctx), remove()) },
	}, running, nil
}

// OwnServer gives the test a migrated database on a server that no other test
// uses, for tests that crash it, restart it, or need settings of their own. It
// needs PostgreSQL's binaries and is skipped without them.
func OwnServer(t testing.TB, settings map[string]string, options ...Option) (*DB, *devpg.Server) {
	t.Helper()
	skip.WithoutBinaries(t)
	s, running, err := startLocal(t.Context(), settings)
	if err != nil {
		t.Fatalf("start a server for this test: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if err := s.stop(ctx); err != nil {
			t.Error(err)
		}
	})
	template, err := s.template()
	if err != nil {
		t.Fatalf("migrate the template database: %v", err)
	}
	return s.migrated(t, template, options), running
}

// url is the address of a database for a role, "" for the owner.
func (s *server) url(database, role string) string {
	address, err := url.Parse(s.adminURL)
	if err != nil {
		panic(fmt.Errorf("the server's address was a URL when it was found: %w", err))
	}
	address.Path = "/" + database
	if role == "" {
		return address.String()
	}
	if s.wantsPasswords() {
		address.User = url.UserPassword(role, rolePassword)
	} else {
		address.User = url.User(role)
	}
	return address.String()
}

func (s *server) wantsPasswords() bool {
	address, err := url.Parse(s.adminURL)
	if err != nil {
		return false
	}
	_, set := address.User.Password()
	return set
}

// howToKeep tells what becomes of a failed test's database.
func (s *server) howToKeep(database string) string {
	switch {
	case s.keepsFolder:
		return fmt.Sprintf("kept the database %s: run `postgres -D %s -k /tmp` as the folder's owner, then `psql -h /tmp -U %s %[1]s`", database, s.data, devpg.Superuser)
	case s.container:
		return fmt.Sprintf("the database %s goes with the container; RATION_TEST_DATABASE_URL uses a server of yours", database)
	default:
		return fmt.Sprintf("the database %s goes with the tests' server; RATION_TEST_KEEP=1 keeps the server's folder, RATION_TEST_DATABASE_URL uses a server of yours", database)
	}
}
