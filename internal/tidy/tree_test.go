package tidy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the module's folder, seen from this package's.
const root = "../.."

// files lists the module's files with one of the endings, as slash paths from
// the root. Hidden folders are left out, testdata too: both hold what others
// made (git, caches, corpora).
func files(t *testing.T, endings ...string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		for _, ending := range endings {
			if strings.HasSuffix(name, ending) {
				relative, err := filepath.Rel(root, path)
				if err != nil {
					return err
				}
				found = append(found, filepath.ToSlash(relative))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("walk the module: %v", err)
	}
	if len(found) == 0 {
		t.Fatalf("no file ends in %v: the rule would hold of nothing", endings)
	}
	return found
}

// read gives the content of a file named from the root.
func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// goFile is a parsed Go file of the module.
type goFile struct {
	*ast.File

	name   string // from the root
	source string
	set    *token.FileSet
}

// line gives the line a position is on.
func (f goFile) line(at token.Pos) int { return f.set.Position(at).Line }

func (f goFile) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

func (f goFile) imports(path string) bool {
	for _, imported := range f.Imports {
		if text(imported.Path) == path {
			return true
		}
	}
	return false
}

// isGenerated reports files that a tool wrote; they are read by nobody.
func (f goFile) isGenerated() bool { return ast.IsGenerated(f.File) }

// goFiles parses every Go file of the module.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	set := token.NewFileSet()
	var parsed []goFile
	for _, name := range files(t, ".go") {
		source := read(t, name)
		file, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, goFile{File: file, name: name, source: source, set: set})
	}
	return parsed
}
