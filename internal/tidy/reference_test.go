package tidy_test

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The reference and the code name the same things: what the code has and the
// page lacks cannot be found, what the page has and the code lacks is a lie.

func TestVariablesAreDocumented(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`\bRATION_[A-Z_]+\b`)
	used := map[string]bool{}
	for _, file := range goFiles(t) {
		maps.Copy(used, names(name, strings.Join(literals(file), "\n")))
	}
	documents := read(t, "docs/reference/configuration.md") + read(t, "docs/internals/testing.md")
	compare(t, used, names(name, documents), "variable", "docs/reference/configuration.md or docs/internals/testing.md")
}

func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^ration_[a-z_]+$`)
	notMetrics := regexp.MustCompile(`^ration_(service|operator|reader|policy)$`) // roles, and the channel of changes
	registered := map[string]bool{}
	for _, file := range goFiles(t) {
		if file.isTest() || !file.imports("github.com/prometheus/client_golang/prometheus") {
			continue
		}
		for _, literal := range literals(file) {
			if name.MatchString(literal) && !notMetrics.MatchString(literal) {
				registered[literal] = true
			}
		}
	}
	documented := names(regexp.MustCompile(`\bration_[a-z_]+\b`), read(t, "docs/reference/metrics.md"))
	compare(t, registered, documented, "metric", "docs/reference/metrics.md")
}

func TestProblemsAreDocumented(t *testing.T) {
	t.Parallel()
	compareHeadings(t, constants(t, "Reason"), "problem", "docs/reference/problems.md")
}

func TestWarningsAreDocumented(t *testing.T) {
	t.Parallel()
	compareHeadings(t, constants(t, "WarningName"), "warning", "docs/reference/warnings.md")
}

// vocabulary are the names of the problems' codes and reasons, and of warnings.
var vocabulary = regexp.MustCompile(`^(Code|[Rr]eason|Warn)[A-Z]\w*$`)

func TestProblemsAndWarningsAreGiven(t *testing.T) {
	t.Parallel()
	named, given := map[string]bool{}, map[string]bool{}
	for _, file := range goFiles(t) {
		if file.isTest() {
			continue
		}
		handled := map[ast.Node]bool{} // who declares a name, or tells it apart in a switch, does not give it
		ast.Inspect(file.File, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.ValueSpec:
				for _, name := range node.Names {
					handled[name] = true
					named[name.Name] = vocabulary.MatchString(name.Name)
				}
			case *ast.CaseClause:
				for _, value := range node.List {
					handled[value] = true
				}
			case *ast.SelectorExpr:
				handled[node.Sel] = handled[node]
			case *ast.Ident:
				given[node.Name] = given[node.Name] || !handled[node]
			}
			return true
		})
	}
	for name, isOurs := range named {
		if isOurs && !given[name] {
			t.Errorf("nothing gives %s: whoever handles it waits in vain", name)
		}
	}
}

// constants gives the texts of all constants and variables of a type.
func constants(t *testing.T, typeName string) map[string]bool {
	t.Helper()
	values := map[string]bool{}
	for _, file := range goFiles(t) {
		if file.isTest() {
			continue
		}
		ast.Inspect(file.File, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}
			kind, _ := spec.Type.(*ast.Ident)
			selector, _ := spec.Type.(*ast.SelectorExpr)
			if kind != nil && kind.Name == typeName || selector != nil && selector.Sel.Name == typeName {
				for _, value := range spec.Values {
					values[text(value)] = true
				}
			}
			return true
		})
	}
	return values
}

// compareHeadings holds a page with a heading for each name to the code.
func compareHeadings(t *testing.T, code map[string]bool, kind, page string) {
	t.Helper()
	headings := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^### ([a-z-]+)$`).FindAllStringSubmatch(read(t, page), -1) {
		headings[match[1]] = true
	}
	compare(t, code, headings, kind, page)
}

// literals gives every string in a file's code. Names in comments bind nobody.
func literals(file goFile) []string {
	var all []string
	ast.Inspect(file.File, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			all = append(all, text(literal))
		}
		return true
	})
	return all
}

// text is the value of a string literal, "" for any other expression.
func text(expression ast.Expr) string {
	literal, ok := expression.(*ast.BasicLit)
	if !ok {
		return ""
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return value
}

func names(pattern *regexp.Regexp, text string) map[string]bool {
	found := map[string]bool{}
	for _, name := range pattern.FindAllString(text, -1) {
		found[name] = true
	}
	return found
}

func compare(t *testing.T, code, documented map[string]bool, kind, page string) {
	t.Helper()
	for name := range code {
		if !documented[name] {
			t.Errorf("%s %s is in the code, not in %s", kind, name, page)
		}
	}
	for name := range documented {
		if !code[name] {
			t.Errorf("%s %s is in %s, not in the code", kind, name, page)
		}
	}
	if len(code) == 0 {
		t.Errorf("no %s found in the code: the rule would hold of nothing", kind)
	}
}
