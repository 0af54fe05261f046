package migrations

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// history is a complete, checked set of migrations: steps[i] is version i+1.
type history struct {
	files fs.FS
	steps []step
}

// step is one migration.
type step struct {
	version  uint
	title    string
	up, down string // file names
}

var fileName = regexp.MustCompile(`^(\d{6})_([a-z][a-z0-9_]*)\.(up|down)\.sql$`)

// newHistory reads the migrations in the root of files. It refuses a misnamed
// file, a gap in the numbers and a step that has only one direction, so that
// no mistake of naming is silently a missing migration.
func newHistory(files fs.FS) (*history, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	h := &history{files: files}
	for _, name := range names { // sorted: 000001_a.down.sql, 000001_a.up.sql, 000002_…
		part := fileName.FindStringSubmatch(name)
		if part == nil {
			return nil, fmt.Errorf("migration %s is not named NNNNNN_title.up.sql or NNNNNN_title.down.sql", name)
		}
		number, err := strconv.ParseUint(part[1], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		switch version, last := uint(number), h.latest(); {
		case part[3] == "down" && version == last+1:
			h.steps = append(h.steps, step{version: version, title: part[2], down: name})
		case part[3] == "up" && version == last && last > 0 && h.steps[last-1].title == part[2]:
			h.steps[last-1].up = name
		default:
			return nil, fmt.Errorf("migration %s does not follow version %d: numbers run from 000001 without gaps, each with one .up.sql and one .down.sql", name, last)
		}
	}
	if i := slices.IndexFunc(h.steps, func(s step) bool { return s.up == "" }); i >= 0 {
		return nil, fmt.Errorf("migration %s has no .up.sql beside it", h.steps[i].down)
	}
	return h, nil
}

func (h *history) latest() uint { return uint(len(h.steps)) }

// hash is SHA-256 over every name and text, in order.
func (h *history) hash() string {
	sum := sha256.New()
	for _, s := range h.steps {
		for _, name := range []string{s.up, s.down} {
			text, err := fs.ReadFile(h.files, name)
			if err != nil {
				panic(fmt.Errorf("read migration %s that was just listed: %w", name, err))
			}
			// The length parts a name from a text, whatever they contain.
			fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// atomic says whether PostgreSQL runs the file as one transaction. CREATE
// INDEX CONCURRENTLY and its kin do not: they stand alone in their file and
// leave an invalid index behind when they fail.
func (h *history) atomic(name string) bool {
	text, err := fs.ReadFile(h.files, name)
	return err == nil && !strings.Contains(strings.ToUpper(string(text)), "CONCURRENTLY")
}
