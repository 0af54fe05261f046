package migrations

import (
	"context"
	"io/fs"
	"testing"
)

// Fixture is a history of the tests' own.
type Fixture struct{ h *history }

// NewFixture reads a history; the test fails when it is refused.
func NewFixture(t *testing.T, files fs.FS) Fixture {
	t.Helper()
	h, err := newHistory(files)
	if err != nil {
		t.Fatal(err)
	}
	return Fixture{h}
}

// Refusal is why a set of files is no history, nil when it is one.
func Refusal(files fs.FS) error {
	_, err := newHistory(files)
	return err
}

func (f Fixture) Up(ctx context.Context, url string) error      { return f.h.up(ctx, url) }
func (f Fixture) DownOne(ctx context.Context, url string) error { return f.h.downOne(ctx, url) }

func (f Fixture) Force(ctx context.Context, url string, version uint) error {
	return f.h.force(ctx, url, version)
}

func (f Fixture) Version(ctx context.Context, url string) (Status, error) {
	return f.h.version(ctx, url)
}

func (f Fixture) Hash() string { return f.h.hash() }

// Embedded is the file system that the binary carries, LockKey the lock that
// migrators take.
func Embedded() fs.FS { return embedded }

const LockKey = lockKey
