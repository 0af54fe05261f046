package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rationhq/ration/httpapi"
)

// desk is where an operator sits: a folder of policies, and a service.
type desk struct {
	*testing.T

	instance *instance
	environ  []string
	folder   string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	i := serve(t, newDatabase(t))
	return &desk{T: t, instance: i, environ: []string{"RATION_ADMIN_URL=" + i.admin}, folder: t.TempDir()}
}

// file writes a policy into the folder and gives its name.
func (d *desk) file(name, text string) string {
	d.Helper()
	path := filepath.Join(d.folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
	return path
}

// changing are the parts of an output that are other ones each time.
var changing = []struct {
	part *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3})?`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "KEY"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UUID"},
}

// prints runs a command line that has to exit with a code and print exactly
// what is wanted, but for what is another each time.
func (d *desk) prints(code int, want string, arguments ...string) {
	d.Helper()
	got, out, errs := command(d.T, d.environ, "", arguments...)
	for _, c := range changing {
		out = c.part.ReplaceAllString(out, c.name)
	}
	if want = strings.TrimPrefix(want, "\n"); got != code || out != want {
		d.Errorf("ration %s\nexits %d, want %d, and prints\n%swant\n%sand says %s", strings.Join(arguments, " "), got, code, out, want, errs)
	}
}

func TestAChangeIsTriedMadeAndTakenBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	search := d.file("search.json", slow("search", 10, ""))
	d.prints(exitDone, "search v1 is in force in every instance\n", "policy", "put", "search", search, "--create", "--wait", "20s")
	d.instance.mustAsk(t, request("search", "A"))

	d.file("search.json", slow("search", 5, `"description":"dearer",`))
	const changes = `
search v1 would become v2
  ~ /limit/capacity  10 → 5
  + /description     "dearer"
  balances: keep; 1 live, 1 would be clamped, 0 could no longer pay for a call
`
	d.prints(exitDone, changes, "policy", "diff", search)
	d.prints(exitDiffers, changes, "policy", "diff", search, "--exit-code")
	d.prints(exitDone, changes, "policy", "put", "search", search, "--if-match", "v1", "--dry-run")
	d.prints(exitFailed, "", "policy", "put", "search", search, "--if-match", "v2", "--dry-run")
	d.prints(exitDone, "search v2 is in force, after v1\n", "policy", "put", "search", search, "--if-match", "v1")
	d.prints(exitDone, "search v2 has this content already\n", "policy", "diff", search, "--exit-code")
	again := d.file("again.json", slow("search", 5, `"description":"dearer","balances":"reset",`))
	d.prints(exitDiffers, `
search v2 would become v3
  balances: reset; 1 live, 0 would be clamped, 0 could no longer pay for a call
`, "policy", "diff", again, "--id", "search", "--exit-code")

	d.prints(exitUsage, "", "policy", "rollback", "search", "v1")
	d.prints(exitUsage, "", "policy", "rollback", "search", "first", "--if-match", "v2")
	d.prints(exitFailed, "", "policy", "rollback", "search", "v9", "--if-match", "v2")
	d.prints(exitDone, `
search v2 would become v3
  - /description     "dearer"
  ~ /limit/capacity  5 → 10
  balances: reset; 1 live, 0 would be clamped, 0 could no longer pay for a call
`, "policy", "rollback", "search", "v1", "--if-match", "v2", "--balances", "reset", "--dry-run")
	d.prints(exitDone, "search v3 is in force, after v2\n", "policy", "rollback", "search", "v1", "--if-match", "v2")
	d.prints(exitFailed, "", "policy", "delete", "search", "--if-match", "v2")
	d.prints(exitDone, "search is deleted, by v4\n", "policy", "delete", "search", "--if-match", "v3", "--reason", "gone")
	d.prints(exitDone, `
VERSION  INSTALLED (UTC)      LIMIT                        MODE
v1       TIME  10 at once, 1 every 86400 s  enforce
v2       TIME  5 at once, 1 every 86400 s   enforce
v3       TIME  10 at once, 1 every 86400 s  enforce
v4       TIME  10 at once, 1 every 86400 s  deleted
`, "policy", "history", "search")

	// Versions go on, and what was kept is not taken up again in silence.
	tell(t, d.environ, []line{
		{call: "policy get search", code: exitFailed, errs: "not-found"},
		{call: "policy put search " + search + " --if-match v4", code: exitFailed, errs: "version-conflict"},
		{call: "policy put search " + search + " --create", code: exitFailed, errs: "#/balances"},
	})
	d.file("search.json", slow("search", 5, `"balances":"reset",`))
	d.prints(exitDone, "search v5 is in force\n", "policy", "put", "search", search, "--create")
}

func TestPoliciesAreCheckedWithoutAService(t *testing.T) {
	t.Parallel()
	d := &desk{T: t, folder: t.TempDir()}
	good := d.file("good.json", slow("search", 10, ""))
	open := d.file("open.json", slow("open", 10, `"onStoreDown":{"mode":"open"},`))
	bad := d.file("bad.json", `{"match":{},"per":["colour"],"extra":1}`)
	misnamed := d.file("a b.json", slow("search", 10, ""))
	long := d.file("long.json", slow("search", 10, "")+strings.Repeat(" ", httpapi.PolicyBytesMax))
	d.prints(exitDone, good+": ok\n", "policy", "lint", good)
	for _, c := range []struct {
		call []string
		code int
		out  []string
	}{
		{[]string{open}, exitDone, []string{open + ": warning: open: #/onStoreDown"}},
		{[]string{open, "--strict"}, exitFailed, nil},
		{[]string{good, bad}, exitFailed, []string{good + ": ok", bad + ": #/per/0 ", bad + ": #/extra is not a known member", bad + ": #/limit is required"}},
		{[]string{misnamed}, exitFailed, []string{"cannot be a policy's id"}},
		{[]string{long}, exitFailed, []string{long + ": # is longer than 65536 bytes"}},
		{[]string{bad, "-o", "json"}, exitFailed, []string{`{"pointer":"#/extra","detail":"is not a known member"}`}},
		{[]string{filepath.Join(d.folder, "none.json")}, exitFailed, nil},
		{nil, exitUsage, nil},
	} {
		code, out, errs := command(t, nil, "", append([]string{"policy", "lint"}, c.call...)...)
		if code != c.code {
			t.Errorf("lint %v exits %d, want %d: %s", c.call, code, c.code, errs)
		}
		for _, want := range c.out {
			if !strings.Contains(out, want) {
				t.Errorf("lint %v prints\n%swithout %s", c.call, out, want)
			}
		}
	}
}

func TestAFolderOfPoliciesIsApplied(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.file("a.json", slow("a", 1, ""))
	d.file("b.json", slow("b", 2, ""))
	d.file("notes.txt", "no policy")
	d.instance.put(t, "other", slow("other", 1, ""), 0)
	tell(t, d.environ, []line{
		{call: "policy apply " + d.folder, code: exitUsage, errs: "--yes"},
		{call: "policy apply " + d.folder + " --plan", out: "2 to create, 0 to change, 0 to delete, 0 unchanged, 1 left (--prune deletes them)"},
		{call: "policy apply " + d.folder + " --plan --exit-code", code: exitDiffers, out: "create a"},
		{call: "policy apply " + d.folder + " --yes --reason first", out: "a v1 created\nb v1 created\n"},
		{call: "policy apply " + d.folder + " --plan --exit-code", out: "0 to create, 0 to change, 0 to delete, 2 unchanged"},
		{call: "policy apply " + d.folder + " --yes", out: "2 unchanged"},
		{call: "audit list --policy a", out: "first"},
	})
	d.file("a.json", slow("a", 3, ""))
	d.prints(exitDone, `
change a v1
  ~ /limit/capacity  1 → 3
  balances: keep; 0 live, 0 would be clamped, 0 could no longer pay for a call
delete other v1
0 to create, 1 to change, 1 to delete, 1 unchanged
a v2 changed
other v2 deleted
`, "policy", "apply", d.folder, "--prune", "--yes")
	code, out, _ := command(t, d.environ, "", "policy", "apply", d.folder, "--yes", "-o", "json")
	if code != exitDone || !strings.Contains(out, `{"steps":[{"id":"a","action":"unchanged","replaces":2`) {
		t.Errorf("as JSON, exit %d: %s", code, out)
	}

	// One bad file, and nothing is begun; every fault is told.
	d.file("a.json", slow("a", 4, ""))
	d.file("c.json", `{"match":{},"per":["colour"],"extra":1}`)
	tell(t, d.environ, []line{
		{call: "policy apply " + d.folder + " --yes", code: exitFailed, errs: "c.json: #/extra is not a known member"},
		{call: "policy apply " + d.folder + " --yes", code: exitFailed, errs: "c.json: #/limit is required"},
		{call: "policy get a -o json", out: `"version":2`},
	})
	d.file("c.json", slow("c", 1, "")+strings.Repeat(" ", httpapi.PolicyBytesMax))
	tell(t, d.environ, []line{{call: "policy apply " + d.folder + " --yes", code: exitFailed, errs: "c.json: # is longer than 65536 bytes"}})
	// What only the service can refuse is refused before anything is done, too.
	d.file("c.json", slow("c", 1, ""))
	d.file("b.json", strings.Replace(slow("b", 2, ""), `"account"`, `"user"`, 1))
	tell(t, d.environ, []line{
		{call: "policy apply " + d.folder + " --yes", code: exitFailed, errs: "#/per"},
		{call: "policy get a -o json", out: `"version":2`},
		{call: "policy get c", code: exitFailed, errs: "not-found"},
	})
}

// A plan is carried out up to the first change that somebody else made
// meanwhile.
func TestApplyingStopsAtTheFirstConflict(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, id := range []string{"a", "b", "c"} {
		d.file(id+".json", slow(id, 2, ""))
		d.instance.put(t, id, slow(id, 1, ""), 0)
	}
	p := &program{stdio: stdio{in: strings.NewReader(""), out: new(strings.Builder), err: new(strings.Builder)}, environment: newEnvironment(d.environ)}
	api, err := p.adminAPI()
	if err != nil {
		t.Fatal(err)
	}
	files, err := readPolicyFolder(d.folder)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := api.planOf(t.Context(), files, applyFlags{})
	if err != nil {
		t.Fatal(err)
	}
	d.instance.put(t, "b", slow("b", 7, ""), 1)
	err = p.carryOut(t.Context(), api, steps, false)
	for _, want := range []string{"change b: version-conflict (412", "in force is v2", "done: a v2; not done: b, c"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	tell(t, d.environ, []line{
		{call: "policy get b -o json", out: `"capacity":7`},
		{call: "policy get c -o json", out: `"version":1`},
	})
}

func TestBucketsAreShownAndSet(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.instance.put(t, "search", slow("search", 10, ""), 0)
	d.instance.put(t, "work", `{"match":{"operations":["work"]},"per":["account"],"limit":{"algorithm":"concurrency","limit":3,"ttlSeconds":86400}}`, 0)
	d.instance.mustAsk(t, request("search", "A"))
	d.instance.mustAsk(t, request("work", "A"))
	d.prints(exitDone, `
policy      search v1, token_bucket
caller      verifiedAccount=A
key         KEY
left        9 of 10
full again  TIME UTC
stored      settled under v1
`, "bucket", "show", "search", "verifiedAccount=A")
	d.prints(exitDone, `
policy      work v1, concurrency
caller      verifiedAccount=A
key         KEY
left        2 of 3
full again  TIME UTC
slot        KEY holds 1 until TIME
`, "bucket", "show", "work", "verifiedAccount=A")
	d.prints(exitDone, `
KEY                               LIMIT  REMAINING  RESET (UTC)          SETTLED  OVERRIDE
KEY  10     9          TIME  v1       -
`, "bucket", "show", "search")
	tell(t, d.environ, []line{
		{call: "bucket show search verifiedAccount=B", out: "no: it never spent"},
		{call: "bucket show search verifiedAccount=A -o json", out: `"remaining":9`},
		{call: "bucket show search user=A", code: exitFailed, errs: "#/verifiedAccount is required"},
		{call: "bucket show search A", code: exitUsage, errs: "NAME=VALUE"},
		{call: "bucket show none verifiedAccount=A", code: exitFailed, errs: "not-found"},
		{call: "bucket reset search verifiedAccount=A --to empty", code: exitUsage, errs: "--reason"},
		{call: "bucket reset search verifiedAccount=A --to half --reason why", code: exitFailed, errs: "#/to"},
		{call: "bucket reset search verifiedAccount=A --to empty --reason why", out: "0 of 10"},
		{call: "bucket reset work verifiedAccount=A --to full --reason why", code: exitFailed, errs: "slots-held (409"},
		{call: "bucket reset work verifiedAccount=A --to full --reason why --release-slots", out: "3 of 3"},
		{call: "bucket rebase --reason why", out: "0 rows were ahead of the clock"},
		{call: "bucket rebase", code: exitUsage, errs: "--reason"},
		{call: "audit list --action bucket.reset", out: "why"},
	})
	if a := d.instance.mustAsk(t, request("search", "A")); a.Allowed {
		t.Error("a key that was made empty allows")
	}
}

// A token is sent to whoever wants one, and what the service says of it is told.
func TestTheTokenIsSent(t *testing.T) {
	t.Parallel()
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	command(t, []string{"RATION_ADMIN_URL=" + server.URL, "RATION_TOKEN=secret"}, "", "policy", "list")
	command(t, []string{"RATION_ADMIN_URL=" + server.URL}, "", "policy", "list")
	if len(seen) != 2 || seen[0] != "Bearer secret" || seen[1] != "" {
		t.Errorf("sent %q", seen)
	}
}

// Completion scripts are made for the shells that people use, and colours are
// for terminals alone.
func TestCompletionAndColours(t *testing.T) {
	t.Parallel()
	tell(t, nil, []line{
		{call: "completion bash", out: "ration"},
		{call: "completion zsh", out: "#compdef ration"},
		{call: "completion fish", out: "complete -c ration"},
	})
	if got := (painter{on: true}).gone("x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := (painter{}).gone("x"); got != "x" {
		t.Errorf("%q", got)
	}
}
