package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rationhq/ration/internal/doctest"
)

var update = flag.Bool("update", false, "write the table and the picture of the roll-out guide anew")

// The guide's command prints the table that the guide shows, and draws its
// picture.
func TestRolloutGuide(t *testing.T) {
	t.Parallel()
	const page, root = "guides/rollout.md", "../../"
	shown := func(language string) string {
		t.Helper()
		blocks, err := doctest.Blocks(page, language)
		if err != nil || len(blocks) == 0 {
			t.Fatalf("%s has no %s: %v", page, language, err)
		}
		return blocks[0].Text
	}
	arguments := strings.Fields(strings.ReplaceAll(shown("sh"), "\\\n", " "))
	if arguments[0] != "ration" {
		t.Fatalf("%s runs %q", page, arguments[0])
	}
	var picture string
	drawn := filepath.Join(t.TempDir(), "picture.svg")
	for i, argument := range arguments {
		switch {
		case strings.HasSuffix(argument, ".svg"):
			picture, arguments[i] = root+argument, drawn
		case strings.Contains(argument, "/"):
			arguments[i] = root + argument
		}
	}
	code, printed, errs := command(t, nil, "", arguments[1:]...)
	if code != exitDone {
		t.Fatalf("exits %d: %s", code, errs)
	}
	if *update {
		replaceInFile(t, root+"docs/"+page, "```text\n"+shown("text")+"```", "```text\n"+printed+"```")
		if err := os.WriteFile(picture, readFile(t, drawn), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := shown("text"); printed != want {
		t.Errorf("prints\n%s\nand the guide shows (write it with -update)\n%s", printed, want)
	}
	if !bytes.Equal(readFile(t, drawn), readFile(t, picture)) {
		t.Errorf("%s is not what the command draws; write it with -update", picture)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func replaceInFile(t *testing.T, path, before, after string) {
	t.Helper()
	content := strings.Replace(string(readFile(t, path)), before, after, 1)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSimulateCommand(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const body = `{"match":{"operations":["auth.*"]},"per":["ip"],"limit":{"algorithm":"fixed_window","limit":1,"windowSeconds":60}}`
	login := "simulate --policy " + file("login.json", body)
	again := file("login", body)
	operations := file("operations", "POST /login auth.login\n")
	access := func(request string) string {
		return fmt.Sprintf("192.0.2.1 - - [30/Nov/2026:06:00:10 +0000] %q 200 1\n", request)
	}
	log := access("POST /login HTTP/1.1") + "nonsense\n" + access("POST /login?again HTTP/1.1") + access("GET / HTTP/1.1")
	const calls = "at,who,operation\n0,192.0.2.1,auth.login\n"
	tell(t, nil, []line{
		{call: "simulate", code: exitUsage, errs: "--policy FILE and --trace FILE"},
		{call: login + " --trace - -o yaml", code: exitUsage, errs: "text or json"},
		{call: login + " --trace - --top -1", code: exitUsage, errs: "at least 0"},
		{call: login + " --trace - --format xml", code: exitUsage, errs: "csv or access"},
		{call: login + " --trace - --default colour=red", code: exitUsage, errs: "no attribute"},
		{call: login + " --trace - --column a=b", code: exitUsage, errs: "--column is for CSV"},
		{call: login + " --trace - --format csv --column a", code: exitUsage, errs: "NAME=WHAT"},
		{call: login + " --trace - --format csv --time hours", code: exitUsage, errs: "no form of time"},
		{call: login + " --trace - --format csv --since yesterday", code: exitUsage, errs: "--since"},
		{call: login + " --trace - --format csv --map " + operations, code: exitUsage, errs: "--map is for access logs"},
		{call: login + " --trace - --policy " + again, code: exitUsage, errs: "cannot be told apart"},
		{call: login + " --trace " + filepath.Join(folder, "none"), code: exitFailed, errs: "no such file"},
		{call: login + " --trace -", code: exitFailed, errs: "the trace has no request"},
		{call: login + " --trace -", stdin: "nonsense\n", code: exitFailed, errs: "no request in 1 lines: line 1 is not of the form"},
		{call: "simulate --trace - --policy " + file("bad.json", "{}"), code: exitFailed, errs: "/limit is required"},

		{call: login + " --trace - --map " + operations, stdin: log, out: "login   2        1        1       50.0%  1     1            50s"},
		{call: login + " --trace - --map " + operations, stdin: log, out: "1 lines are no requests:\n  line 2 is not of the form"},
		{call: login + " --trace - --map " + operations, stdin: log, out: "login does not match: 1 requests"},
		{call: login + " --trace - --map " + operations, stdin: log, out: "ip=192.0.2.1  1        1       50s         2026-11-30 06:00:10"},
		{call: login + " --trace - --map " + operations + " -o json", stdin: log, out: `"worstWait":{"millis":50000,"never":false}`},
		{call: login + " --trace - --format csv --column at=time --time seconds --column who=ip", stdin: calls, out: "1970-01-01 00:00:00 UTC"},
	})
}
