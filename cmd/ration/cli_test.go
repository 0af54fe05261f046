package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/migrations"
	"github.com/rationhq/ration/pgstore"
)

// line is one command line and what comes of it.
type line struct {
	call  string // arguments, divided by spaces
	stdin string
	code  int
	out   string // has to be in standard output
	errs  string // has to be in standard error
}

// tell runs lines one after the other.
func tell(t *testing.T, environ []string, story []line) {
	t.Helper()
	for _, l := range story {
		code, out, errs := command(t, environ, l.stdin, strings.Fields(l.call)...)
		if code != l.code || !strings.Contains(out, l.out) || !strings.Contains(errs, l.errs) {
			t.Errorf("ration %s\n exits %d, want %d\n writes %q, want %q in it\n says %q, want %q in it",
				l.call, code, l.code, out, l.out, errs, l.errs)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	major, minorMin := pgstore.Schema()
	tell(t, nil, []line{
		{call: "", out: "ration COMMAND"},
		{call: "help policy put", out: "--if-match"},
		{call: "version", out: fmt.Sprintf("schema      %d.%d or a newer %[1]d.x", major, minorMin)},
		{call: "bogus", code: exitUsage, errs: `unknown command "bogus"`},
		{call: "serve now", code: exitUsage, errs: "See `ration serve --help`"},
		{call: "serve --port 1", code: exitUsage, errs: "unknown flag: --port"},
		{call: "serve", code: exitUsage, errs: "RATION_DATABASE_URL is not set"},
		{call: "migrate up", code: exitUsage, errs: "RATION_DATABASE_URL is not set"},
		{call: "migrate", out: "Apply every migration that is missing"},
		{call: "migrate sideways", code: exitUsage, errs: `no command "sideways"`},
		{call: "migrate force", code: exitUsage, errs: "accepts 1 arg(s)"},
		{call: "migrate force first", code: exitUsage, errs: "whole number from 0"},
		{call: "policy get", code: exitUsage, errs: "accepts 1 arg(s)"},
		{call: "policy put x -", code: exitUsage, errs: "--create"},
		{call: "policy put x - --create --if-match v1", code: exitUsage, errs: "either"},
		{call: "policy put x - --if-match latest", code: exitUsage, errs: "not a version"},
		{call: "policy list -o yaml", code: exitUsage, errs: "text or json"},
		{call: "health localhost", code: exitUsage, errs: "http://"},
		{call: "health http://127.0.0.1:1/", code: exitFailed, errs: "refused"},
	})
	nowhere := []line{}
	for _, call := range []string{"migrate up", "serve", "dev", "token list", "audit verify", "doctor"} {
		nowhere = append(nowhere, line{call: call, code: exitUsage, errs: "RATION_DATABASE_URL names no database: "})
	}
	for _, url := range []string{"127.0.0.1", "postgres://127.0.0.1:port/ration", "postgres://127.0.0.1/ration?sslmode=perhaps"} {
		tell(t, []string{"RATION_DATABASE_URL=" + url}, nowhere)
	}
	tell(t, []string{"RATION_ADMIN_URL=http://127.0.0.1:1"}, []line{
		{call: "policy list", code: exitFailed, errs: "no answer from http://127.0.0.1:1 (RATION_ADMIN_URL)"},
	})
}

func TestMigrateCommands(t *testing.T) {
	t.Parallel()
	latest := migrations.Latest()
	at := func(version uint) string { return fmt.Sprintf("schema version %d of %d", version, latest) }
	tell(t, []string{"RATION_DATABASE_URL=" + dbtest.Empty(t).OwnerURL()}, []line{
		{call: "migrate version", out: at(0)},
		{call: "migrate up", out: at(latest)},
		{call: "migrate up", out: at(latest)},
		{call: "migrate down", out: at(latest - 1)},
		{call: fmt.Sprint("migrate force ", latest+1), code: exitFailed, errs: fmt.Sprint("there is no schema version ", latest+1)},
		{call: fmt.Sprint("migrate force ", latest-1), out: at(latest - 1)},
		{call: "migrate up", out: at(latest)},
	})
	tell(t, []string{"RATION_DATABASE_URL=postgres://127.0.0.1:1/ration"}, []line{
		{call: "migrate version", code: exitFailed, errs: "connect"},
	})
}

func TestPolicyCommands(t *testing.T) {
	t.Parallel()
	i := serve(t, newDatabase(t))
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	search := slow("search", 10, "")
	reasoned := file("reasoned.json", strings.Replace(slow("search", 5, ""), "{", `{"reason":"of the file",`, 1))
	twice := file("twice.json", strings.Replace(search, "{", `{"reason":"one","reason":"two",`, 1))
	const bad = `{"match":{},"per":["colour"],"limit":{"algorithm":"token_bucket","capacity":0,"refillTokens":1,"refillSeconds":1},"extra":1}`
	environ := []string{"RATION_ADMIN_URL=" + i.admin + "/"}
	tell(t, environ, []line{
		{call: "policy list", out: "ID  VERSION"},
		{call: "policy list -o json", out: `{"policies":[]}`},
		{call: "policy get search", code: exitFailed, errs: "not-found (404"},
		{call: "policy put search - --create", stdin: search, out: "search v1 is in force"},
		{call: "policy put search - --create", stdin: search, code: exitFailed, errs: "in force is v1"},
		{call: "policy put search - --if-match v1", stdin: search, out: "search v1 has this content already"},
		{call: "policy put search " + reasoned + " --if-match v1 --reason dearer", out: "search v2 is in force, after v1"},
		{call: "policy put search " + reasoned + ` --if-match "v1"`, code: exitFailed, errs: "version-conflict (412"},
		{call: "policy put search " + twice + " --if-match v2 --reason three", code: exitFailed, errs: "#/reason"},
		{call: "policy put search " + filepath.Join(folder, "none.json") + " --if-match v2", code: exitFailed, errs: "no such file"},
		{call: "policy put search - --if-match v2", stdin: "nonsense", code: exitFailed, errs: "invalid-request (400"},
		{call: "policy put bad - --create", stdin: bad, code: exitFailed, errs: "#/limit/capacity"},
		{call: "policy put bad - --create", stdin: bad, code: exitFailed, errs: "#/extra"},
		{call: "policy list", out: "search  v2       5 at once, 1 every 86400 s"},
		{call: "policy get search -o json", out: `"version":2`},
		{call: "policy get search", errs: "search v2, installed "},
	})

	// What get prints is what put takes.
	_, printed, _ := command(t, environ, "", "policy", "get", "search")
	tell(t, environ, []line{
		{call: "policy put search - --if-match v2", stdin: printed, out: "v2 has this content already"},
		{call: "policy put copy - --create", stdin: printed, out: "copy v1 is in force"},
	})
}
