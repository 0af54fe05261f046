package migrations_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rationhq/ration/migrations"
)

func files(names ...string) fstest.MapFS {
	set := fstest.MapFS{}
	for _, name := range names {
		set[name] = &fstest.MapFile{Data: []byte("SELECT 1;")}
	}
	return set
}

func TestMisnamedFilesAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ fault, files string }{
		{"", ""},
		{"", "000001_a.up.sql 000001_a.down.sql 000002_b.up.sql 000002_b.down.sql"},
		{"not named", "1_a.up.sql 1_a.down.sql"},
		{"not named", "000001-a.up.sql"},
		{"not named", "000001_a.sql"},
		{"not named", "000001_A.up.sql 000001_A.down.sql"},
		{"does not follow", "000001_a.up.sql"},
		{"no .up.sql", "000001_a.down.sql"},
		{"does not follow", "000000_a.up.sql 000000_a.down.sql"},
		{"does not follow", "000002_b.up.sql 000002_b.down.sql"},
		{"does not follow", "000001_a.up.sql 000001_a.down.sql 000003_b.up.sql 000003_b.down.sql"},
		{"does not follow", "000001_a.up.sql 000001_a.down.sql 000001_b.up.sql 000001_b.down.sql"},
		{"does not follow", "000001_a.down.sql 000001_b.up.sql"},
	} {
		err := migrations.Refusal(files(strings.Fields(test.files)...))
		switch {
		case test.fault == "" && err != nil:
			t.Errorf("%q is refused: %v", test.files, err)
		case test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)):
			t.Errorf("%q: %v, want a refusal with %q", test.files, err, test.fault)
		}
	}
}

func TestHashNamesTheContent(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, change := range []func(fstest.MapFS){
		func(fstest.MapFS) {},
		func(set fstest.MapFS) { set["000001_a.up.sql"].Data = []byte("SELECT 2;") },
		func(set fstest.MapFS) { set["000001_a.down.sql"].Data = []byte("SELECT 2;") },
		func(set fstest.MapFS) {
			set["000002_b.up.sql"], set["000002_b.down.sql"] = &fstest.MapFile{}, &fstest.MapFile{}
		},
	} {
		set := files("000001_a.up.sql", "000001_a.down.sql")
		change(set)
		fixture := migrations.NewFixture(t, set)
		if fixture.Hash() != migrations.NewFixture(t, set).Hash() {
			t.Error("the same files have two hashes")
		}
		seen[fixture.Hash()] = ""
	}
	if len(seen) != 4 {
		t.Errorf("4 different sets of files have %d hashes", len(seen))
	}
}

func TestEveryFileOnDiskIsEmbedded(t *testing.T) {
	t.Parallel()
	if err := migrations.Refusal(migrations.Embedded()); err != nil {
		t.Fatal(err)
	}
	onDisk, err := filepath.Glob("*.sql")
	if err != nil {
		t.Fatal(err)
	}
	if want := uint(len(onDisk) / 2); migrations.Latest() != want {
		t.Errorf("the binary knows %d migrations, %d are on disk", migrations.Latest(), want)
	}
	for _, name := range onDisk {
		disk, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		carried, err := fs.ReadFile(migrations.Embedded(), name)
		if err != nil || !bytes.Equal(disk, carried) {
			t.Errorf("%s is not carried as it is on disk: %v", name, err)
		}
	}
}

var ownTransaction = regexp.MustCompile(`(?im)^(begin|commit|rollback|start)( transaction| work)?[ \t]*;`)

// Each file is one transaction because PostgreSQL makes it one: a file with a
// transaction of its own could stop half-way.
func TestNoFileHasItsOwnTransaction(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(migrations.Embedded(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(migrations.Embedded(), name)
		if err != nil {
			t.Fatal(err)
		}
		if found := ownTransaction.Find(text); found != nil {
			t.Errorf("%s has %q", name, found)
		}
	}
}

// A released migration has run somewhere; a change to it would never arrive
// there.
func TestReleasedMigrationsNeverChange(t *testing.T) {
	t.Parallel()
	sums, err := os.Open("SUMS")
	if err != nil {
		t.Fatal(err)
	}
	defer sums.Close()
	for lines := bufio.NewScanner(sums); lines.Scan(); {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		sum, name, ok := strings.Cut(line, "  ")
		if !ok {
			t.Fatalf("SUMS has %q, not `<sha256>  <file>`", line)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := sha256.Sum256(text); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s was released and has changed since; write a new migration instead", name)
		}
	}
}
