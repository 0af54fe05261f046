// Package dbtest gives every test a PostgreSQL database of its own.
//
// The server is RATION_TEST_DATABASE_URL where that is set (a role that may
// create databases and roles), else PostgreSQL's binaries on this machine,
// started once for the test binary, else a container; without any of them,
// and with -short, the test is skipped. RATION_TEST_CONTAINER=1 asks for the
// container in any case, RATION_TEST_IMAGE says of which image.
//
// A database is cloned from a template that is named by the hash of the
// migrations, so that a binary migrates once. A failed test keeps its database
// where the server outlives the test, and says how to open it.
package dbtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ServiceRole is the role that `ration serve` connects as.
const ServiceRole = "ration_service"

// DB is a database that belongs to one test.
type DB struct {
	Name string

	t      testing.TB
	server *server
	owner  func() *pgxpool.Pool
}

// Option says how a database differs from a freshly migrated one.
type Option func(*DB)

// TestClock marks the database as one whose functions accept an instant from
// the caller in place of the server's clock.
func TestClock(db *DB) { db.exec(`SELECT ration.use_test_clock_v1()`) }

// New gives the test a migrated database, dropped when the test has passed.
func New(t testing.TB, options ...Option) *DB {
	t.Helper()
	s := sharedServer(t)
	template, err := s.template()
	if err != nil {
		t.Fatalf("migrate the template database: %v", err)
	}
	return s.migrated(t, template, options)
}

// Empty gives the test a database that nothing has touched, for tests of the
// migrations themselves.
func Empty(t testing.TB) *DB {
	t.Helper()
	return sharedServer(t).create(t, `template0 ENCODING 'UTF8'`)
}

// OwnerURL is the database's address for the role that owns it.
func (db *DB) OwnerURL() string { return db.server.url(db.Name, "") }

// ServiceURL is the database's address for [ServiceRole].
func (db *DB) ServiceURL() string { return db.server.url(db.Name, ServiceRole) }

// Owner is a pool of the owner's connections, opened at the first call and
// closed with the test.
func (db *DB) Owner() *pgxpool.Pool {
	db.t.Helper()
	return db.owner()
}

func (db *DB) openOwner() *pgxpool.Pool {
	db.t.Helper()
	pool, err := pgxpool.New(db.t.Context(), db.OwnerURL())
	if err != nil {
		db.t.Fatalf("open the test's database: %v", err)
	}
	return pool
}

// exec runs a statement as the owner on a connection of its own.
func (db *DB) exec(sql string) {
	db.t.Helper()
	if err := exec(db.t.Context(), db.OwnerURL(), sql); err != nil {
		db.t.Fatal(err)
	}
}

// migrated clones the template. What a role is set to in a database does not
// come along with a clone, so it is set again.
func (s *server) migrated(t testing.TB, template string, options []Option) *DB {
	t.Helper()
	db := s.create(t, template)
	db.exec(`SELECT ration.configure_roles_v1()`)
	for _, option := range options {
		option(db)
	}
	return db
}

// create makes the test's database out of a template.
func (s *server) create(t testing.TB, template string) *DB {
	t.Helper()
	db := &DB{Name: databaseName(t), t: t, server: s}
	// A copy of files: 0.2 s against 0.5 s by way of the write-ahead log (two busy cores).
	statement := fmt.Sprintf(`CREATE DATABASE %s TEMPLATE %s STRATEGY FILE_COPY`, db.Name, template)
	if err := exec(t.Context(), s.adminURL, statement); err != nil {
		t.Fatal(err)
	}
	opened := false
	db.owner = sync.OnceValue(func() *pgxpool.Pool { opened = true; return db.openOwner() })
	t.Cleanup(func() {
		if opened {
			db.owner().Close()
		}
		db.end()
	})
	return db
}

// dropTimeout bounds the end of a database whose test has hung up on it.
const dropTimeout = 30 * time.Second

// end drops the database, or says how to open it when the test has failed.
func (db *DB) end() {
	if db.t.Failed() && db.server.outlives {
		db.t.Logf("kept the database: psql '%s'", db.OwnerURL())
		return
	}
	if db.t.Failed() {
		db.t.Log(db.server.howToKeep(db.Name))
		if db.server.keepsFolder {
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
	defer cancel()
	if err := exec(ctx, db.server.adminURL, `DROP DATABASE `+db.Name+` WITH (FORCE)`); err != nil {
		db.t.Error(err)
	}
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// databaseName is the test's own name as far as one fits, so that a kept
// database is found, with a random end that no other binary uses.
func databaseName(t testing.TB) string {
	name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(t.Name()), "_"), "_")
	random := make([]byte, 6)
	_, _ = rand.Read(random) // never fails: it ends the process instead
	return "t_" + name[:min(len(name), 40)] + "_" + hex.EncodeToString(random)
}

// exec runs statements on a connection of their own.
func exec(ctx context.Context, url string, statements ...string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // what mattered was answered
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
