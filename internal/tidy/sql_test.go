package tidy_test

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// functionFields are what the head of every SQL function has to say before its
// body: in which units it speaks, what it locks in which order, which clock it
// reads and which SQLSTATEs of ours it raises.
var functionFields = []string{"Units:", "Locks:", "Clock:", "SQLSTATE:"}

var createFunction = regexp.MustCompile(`(?im)^\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:FUNCTION|PROCEDURE)\s+(?:ration\.)?"?(\w+)"?`)

func TestSQLFunctionsAreOneToAFile(t *testing.T) {
	t.Parallel()
	for _, name := range sqlFunctions(t) {
		made := createFunction.FindAllStringSubmatch(read(t, name), -1)
		if len(made) != 1 {
			t.Errorf("%s makes %d functions, want one", name, len(made))
			continue
		}
		if want := strings.TrimSuffix(path.Base(name), ".sql"); made[0][1] != want {
			t.Errorf("%s makes %q, want %q: a function is looked for by its name", name, made[0][1], want)
		}
	}
}

func TestSQLFunctionsHaveTheirHead(t *testing.T) {
	t.Parallel()
	for _, name := range sqlFunctions(t) {
		content := read(t, name)
		head := content
		if at := createFunction.FindStringIndex(content); at != nil {
			head = content[:at[0]]
		}
		for _, field := range functionFields {
			if !strings.Contains(head, field) {
				t.Errorf("%s: the comment above the function does not say %q", name, field)
			}
		}
	}
}

// A change takes the row of ration.policy_set first and that of the audit's
// head last, so that changes wait for each other at the one or the other and
// never in a circle; and whoever a listener let in is written down with the
// role.
func TestWhatWritesTheAudit(t *testing.T) {
	t.Parallel()
	insert := regexp.MustCompile(`INSERT INTO ration\.audit \(([^)]*)\)`)
	writers := 0
	for _, name := range sqlFunctions(t) {
		content := read(t, name)
		head, body, _ := strings.Cut(content, "CREATE OR REPLACE FUNCTION")
		for _, columns := range insert.FindAllStringSubmatch(body, -1) {
			writers++
			if let, names := strings.Contains(body, "p_request_id text"), strings.Contains(columns[1], " role,"); let != names {
				t.Errorf("%s works for whom a listener let in: %t; it writes down in which role: %t", name, let, names)
			}
			if !strings.Contains(head, "ration.policy_set") && !strings.Contains(head, "the audit's") {
				t.Errorf("%s writes to the audit, and does not say that the row of ration.policy_set is locked before, or nothing but the audit's", name)
			}
		}
	}
	if writers == 0 {
		t.Error("no function writes to the audit: the rule would hold of nothing")
	}
}

func TestSQLFunctionsAreInTheReference(t *testing.T) {
	t.Parallel()
	reference := read(t, "docs/reference/sql.md")
	for _, name := range sqlFunctions(t) {
		function := strings.TrimSuffix(path.Base(name), ".sql")
		if !strings.Contains(reference, "### ration."+function+"\n") {
			t.Errorf("docs/reference/sql.md has no entry %q", "### ration."+function)
		}
	}
}

func sqlFunctions(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, name := range files(t, ".sql") {
		if path.Dir(name) == "sql/functions" {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		t.Fatal("no SQL functions found")
	}
	return found
}
