// Package migrations holds the schema's history and moves a database along
// it. It is the only importer of golang-migrate, so that one place knows its
// locks, its dirty flag and what Down means.
//
// A migration is a pair of files, NNNNNN_title.up.sql and .down.sql, numbered
// from 1 without gaps. PostgreSQL gets a file as one string, which is one
// transaction: it is applied whole or not at all. Migrations create and drop
// what is inside the schema `ration`; the schema itself is made here, before
// the first of them, because the version table (ration.schema_migrations)
// stands in it.
//
// Every function needs a direct connection. Behind a transaction pooler the
// lock that keeps two migrators apart would belong to nobody.
package migrations

import (
	"context"
	"embed"
)

//go:embed *.sql
var embedded embed.FS

// Status is where a database stands in the schema's history.
type Status struct {
	Version uint // of the newest migration applied, 0 when there is none
	Dirty   bool // a migration broke off and left the schema in doubt, see [DirtyError]
	Latest  uint // of the newest migration that this binary knows
}

// Up applies every migration that the database lacks; having none to apply is
// success. Any number of instances may call it at once: one migrates, the
// others wait for it, as long as ctx allows ([BusyError]).
// It refuses a database newer than this binary ([NewerError]) and one in doubt
// ([DirtyError]); a migration that fails is a [FailedError].
func Up(ctx context.Context, url string) error {
	h, err := newHistory(embedded)
	if err != nil {
		return err
	}
	return h.up(ctx, url)
}

// DownOne takes back the newest migration applied, and with it the data that
// only it had room for. A database without migrations is left alone. Errors
// are those of [Up].
func DownOne(ctx context.Context, url string) error {
	h, err := newHistory(embedded)
	if err != nil {
		return err
	}
	return h.downOne(ctx, url)
}

// Version tells where the database stands. It takes no lock and writes
// nothing.
func Version(ctx context.Context, url string) (Status, error) {
	h, err := newHistory(embedded)
	if err != nil {
		return Status{}, err
	}
	return h.version(ctx, url)
}

// Force records that the database is at version (0 to [Latest]) and in no
// doubt, without running anything: the operator's word that the schema has
// been looked at and is that version's.
func Force(ctx context.Context, url string, version uint) error {
	h, err := newHistory(embedded)
	if err != nil {
		return err
	}
	return h.force(ctx, url, version)
}

// Latest is the version of the newest migration in this binary.
func Latest() uint { return mustEmbedded().latest() }

// Hash names the content of all migrations in this binary: hexadecimal
// SHA-256 over their names and texts.
func Hash() string { return mustEmbedded().hash() }

// mustEmbedded is the embedded history. It panics on a misnamed file, which
// the tests of this package keep out of any build.
func mustEmbedded() *history {
	h, err := newHistory(embedded)
	if err != nil {
		panic(err)
	}
	return h
}
