package devpg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Binaries is a folder with PostgreSQL's programs.
type Binaries struct {
	Dir   string
	Major int // 15, 16, …
}

// Find looks for PostgreSQL's programs, [MajorMin] or newer: in binDir and
// nowhere else when that is given; otherwise on the PATH and then where
// packages put them, newest first. Finding none is not an error.
func Find(ctx context.Context, binDir string) ([]Binaries, error) {
	if binDir != "" {
		found, err := inspect(ctx, binDir)
		if err != nil {
			return nil, fmt.Errorf("no usable PostgreSQL in %s: %w", binDir, err)
		}
		return []Binaries{found}, nil
	}
	var all []Binaries
	if postgres, err := exec.LookPath("postgres"); err == nil {
		if program, err := filepath.EvalSymlinks(postgres); err == nil {
			postgres = program // Homebrew links single programs; their neighbours are here
		}
		if found, err := inspect(ctx, filepath.Dir(postgres)); err == nil {
			all = append(all, found)
		}
	}
	var packaged []Binaries
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",                               // Debian, Ubuntu
		"/usr/pgsql-*/bin",                                        // PostgreSQL's own RPMs
		"/usr/local/pgsql/bin",                                    // built from source
		"/opt/homebrew/opt/postgresql@*/bin",                      // Homebrew, Apple silicon
		"/usr/local/opt/postgresql@*/bin",                         // Homebrew, Intel
		"/Applications/Postgres.app/Contents/Versions/[0-9]*/bin", // Postgres.app; "latest" is a link to one of them
	} {
		dirs, _ := filepath.Glob(pattern) // fails on a malformed pattern only
		for _, dir := range dirs {
			if found, err := inspect(ctx, dir); err == nil {
				packaged = append(packaged, found)
			}
		}
	}
	slices.SortStableFunc(packaged, func(a, b Binaries) int { return cmp.Compare(b.Major, a.Major) })
	return append(all, packaged...), nil
}

var versionLine = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// inspect asks the programs in dir for their version.
func inspect(ctx context.Context, dir string) (Binaries, error) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return Binaries{}, fmt.Errorf("look for initdb: %w", err)
	}
	output, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return Binaries{}, fmt.Errorf("ask postgres for its version: %w", err)
	}
	part := versionLine.FindSubmatch(output)
	if part == nil {
		return Binaries{}, fmt.Errorf("postgres --version says %q", strings.TrimSpace(string(output)))
	}
	major, err := strconv.Atoi(string(part[1]))
	if err != nil {
		return Binaries{}, fmt.Errorf("read PostgreSQL's version: %w", err)
	}
	if major < MajorMin {
		return Binaries{}, fmt.Errorf("it is PostgreSQL %d, and %d is the oldest supported", major, MajorMin)
	}
	return Binaries{Dir: dir, Major: major}, nil
}

// choose takes the first of the binaries (at least one) that can work on the
// data, which only binaries of its own major version can.
func choose(found []Binaries, dataMajor int) (Binaries, error) {
	if dataMajor == 0 {
		return found[0], nil
	}
	i := slices.IndexFunc(found, func(b Binaries) bool { return b.Major == dataMajor })
	if i < 0 {
		return Binaries{}, fmt.Errorf("the data was made by PostgreSQL %d, and the installed one is %d: install %[1]d, or remove the folder to begin anew", dataMajor, found[0].Major)
	}
	return found[i], nil
}

// dataMajor is the major version that made the data folder, 0 when there is
// none.
func dataMajor(dataDir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dataDir, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the data's version: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read the data's version: %w", err)
	}
	return major, nil
}
