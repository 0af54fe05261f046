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
