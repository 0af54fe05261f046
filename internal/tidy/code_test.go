package tidy_test

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	fileLinesMax     = 400 // beyond it a file holds more than one noun
	functionLinesMax = 70  // one screen
)

func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	for _, file := range goFiles(t) {
		lines := strings.Count(file.source, "\n")
		if lines > fileLinesMax && !file.isGenerated() {
			t.Errorf("%s has %d lines, at most %d: split it by noun", file.name, lines, fileLinesMax)
		}
	}
}

func TestFunctionsAreShort(t *testing.T) {
	t.Parallel()
	for _, file := range goFiles(t) {
		if file.isGenerated() {
			continue
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			first, last := file.line(function.Pos()), file.line(function.End())
			if lines := last - first + 1; lines > functionLinesMax {
				t.Errorf("%s:%d: %s has %d lines, at most %d", file.name, first, function.Name, lines, functionLinesMax)
			}
		}
	}
}

func TestPackagesAreNamedForWhatTheyHold(t *testing.T) {
	t.Parallel()
	nothing := []string{"util", "utils", "common", "models", "helpers", "misc", "shared", "types", "base", "lib"}
	for _, file := range goFiles(t) {
		if slices.Contains(nothing, strings.TrimSuffix(file.Name.Name, "_test")) {
			t.Errorf("%s: a package named %q says nothing", file.name, file.Name.Name)
		}
	}
}

func TestPackagesAreDocumented(t *testing.T) {
	t.Parallel()
	documented := map[string]int{} // package comments by folder
	for _, file := range goFiles(t) {
		if file.isTest() {
			continue
		}
		folder := path.Dir(file.name)
		documented[folder] += 0
		if file.Doc != nil && strings.TrimSpace(file.Doc.Text()) != "" {
			documented[folder]++
		}
	}
	for folder, comments := range documented {
		if comments != 1 {
			t.Errorf("%s has %d package comments, want one", folder, comments)
		}
	}
}

// A sleep in a test is either too short (it fails by chance) or too long.
func TestTestsDoNotSleep(t *testing.T) {
	t.Parallel()
	eachTestCall(t, func(file goFile, call *ast.CallExpr, receiver, name string) {
		if receiver == "time" && name == "Sleep" {
			t.Errorf("%s:%d: wait for a signal instead of sleeping", file.name, file.line(call.Pos()))
		}
	})
}

func TestSkippedTestsSayWhy(t *testing.T) {
	t.Parallel()
	eachTestCall(t, func(file goFile, call *ast.CallExpr, _, name string) {
		if name == "SkipNow" || name == "Skip" && len(call.Args) == 0 {
			t.Errorf("%s:%d: say why the test is skipped, and what would run it", file.name, file.line(call.Pos()))
		}
	})
}

// eachTestCall visits every call of the form receiver.name(…) in test files.
func eachTestCall(t *testing.T, visit func(file goFile, call *ast.CallExpr, receiver, name string)) {
	t.Helper()
	for _, file := range goFiles(t) {
		if !file.isTest() {
			continue
		}
		ast.Inspect(file.File, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if receiver, ok := selector.X.(*ast.Ident); ok {
				visit(file, call, receiver.Name, selector.Sel.Name)
			}
			return true
		})
	}
}
