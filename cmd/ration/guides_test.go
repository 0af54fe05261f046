package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rationhq/ration/internal/doctest"
	"github.com/rationhq/ration/internal/skip"
)

// Every console session of the guides is typed in, command by command, in
// front of what `ration dev` serves, and has to answer what the page says.
// Each page begins at the same instant; the clock stands still but for `sleep`.
func TestGuides(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			skip.Because(t, "needs "+program)
		}
	}
	guides, err := doctest.Guides()
	if err != nil {
		t.Fatal(err)
	}
	followed := 0
	for _, page := range guides {
		sessions, err := doctest.Blocks(page, "console")
		if err != nil {
			t.Fatal(err)
		}
		if len(sessions) == 0 {
			continue
		}
		followed++
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			reader := newReader(t)
			for _, session := range sessions {
				reader.follow(t, session)
			}
		})
	}
	if followed == 0 {
		t.Error("no guide has a command")
	}
}

// reader follows one page.
type reader struct {
	clock    *clock
	instance *instance
	folder   string            // where the commands are run
	environ  []string          // with which they are
	slots    map[string]string // the ids of slots that were answered, by those that the page shows
}

// newReader begins in front of a fresh database, at an instant that the pages
// speak of.
func newReader(t *testing.T) *reader {
	t.Helper()
	db := newDatabase(t)
	r := &reader{slots: map[string]string{}, clock: newClock(t, db, time.Date(2026, time.November, 30, 6, 0, 0, 0, time.UTC))}
	r.instance = start(t, append(patient(), "RATION_DATABASE_URL="+db.OwnerURL(), "RATION_JITTER=0"), "dev")
	r.folder = t.TempDir()
	r.environ = append(os.Environ(), "PATH="+programFolder(t)+string(os.PathListSeparator)+os.Getenv("PATH"), "RATION_ADMIN_URL="+r.instance.admin,
		"RATION_DATABASE_URL="+db.OwnerURL())
	return r
}

// programFolder makes a folder in which `ration` is the program under test.
func programFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asProgram, os.Args[0])
	if err := os.WriteFile(filepath.Join(folder, "ration"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}

var (
	slotID   = regexp.MustCompile(`[0-9a-f]{32}`)
	sleeping = regexp.MustCompile(`^sleep (\d+)$`)
)

// follow types in what a session shows.
func (r *reader) follow(t *testing.T, session doctest.Block) {
	t.Helper()
	for shown := range strings.SplitSeq("\n"+session.Text, "\n$ ") {
		if shown == "" {
			continue
		}
		command, want := cutCommand(shown)
		if pause := sleeping.FindStringSubmatch(command); pause != nil {
			seconds, err := time.ParseDuration(pause[1] + "s")
			if err != nil {
				t.Fatal(err)
			}
			r.clock.forward(seconds)
			continue
		}
		if got := r.run(t, command); !r.isAnswer(got, want) {
			t.Errorf("%s:\n$ %s\nanswers\n%s\nand the page says\n%s", session.Name, command, got, want)
		}
	}
}

// cutCommand parts a command, which goes on behind a backslash and within
// quotes, from what it prints.
func cutCommand(shown string) (command, output string) {
	lines := strings.SplitAfter(shown, "\n")
	n := 0
	for n < len(lines) {
		command += lines[n]
		n++
		if !strings.HasSuffix(command, "\\\n") && strings.Count(command, "'")%2 == 0 {
			break
		}
	}
	return strings.TrimSpace(command), strings.Join(lines[n:], "")
}

// run gives what a command prints.
func (r *reader) run(t *testing.T, command string) string {
	t.Helper()
	command = slotID.ReplaceAllStringFunc(command, func(id string) string { return r.slots[id] })
	command = strings.NewReplacer("http://127.0.0.1:8080", r.instance.decisions, "http://127.0.0.1:8081", r.instance.admin).Replace(command)
	shell := exec.CommandContext(t.Context(), "sh", "-c", command)
	shell.Dir, shell.Env = r.folder, r.environ
	output, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
	return string(output)
}

// isAnswer compares what a command prints with what the page shows, where an
// ellipsis stands for anything. Slots have other ids each time: those that the
// page shows are remembered as those that were answered.
func (r *reader) isAnswer(got, want string) bool {
	var shown []string
	pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(want)), "…", ".*")
	pattern = slotID.ReplaceAllStringFunc(pattern, func(id string) string {
		if answered, known := r.slots[id]; known {
			return answered
		}
		shown = append(shown, id)
		return "(" + slotID.String() + ")"
	})
	got = strings.TrimSpace(strings.ReplaceAll(got, "\r\n", "\n"))
	found := regexp.MustCompile(`(?s)^` + pattern + `$`).FindStringSubmatch(got)
	if found == nil {
		return false
	}
	for i, id := range shown {
		r.slots[id] = found[i+1]
	}
	return true
}
