package tidy_test

import (
	"go/ast"
	"go/token"
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
	documents := read(t, "docs/reference/configuration.md") + read(t, "docs/internals/testing.md")
	compare(t, names(name, literals(t)), names(name, documents), "variable", "docs/reference/configuration.md or docs/internals/testing.md")
}

func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	registered := map[string]bool{}
	for _, file := range goFiles(t) {
		if file.isTest() {
			continue
		}
		ast.Inspect(file.File, func(node ast.Node) bool {
			switch made := node.(type) {
			case *ast.KeyValueExpr: // Name: "ration_…" of an Opts literal
				if key, ok := made.Key.(*ast.Ident); ok && key.Name == "Name" {
					addMetric(registered, made.Value)
				}
			case *ast.CallExpr: // prometheus.NewDesc("ration_…", …)
				if selector, ok := made.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == "NewDesc" {
					addMetric(registered, made.Args[0])
				}
			}
			return true
		})
	}
	documented := names(regexp.MustCompile(`\bration_[a-z_]+\b`), read(t, "docs/reference/metrics.md"))
	compare(t, registered, documented, "metric", "docs/reference/metrics.md")
}

func addMetric(registered map[string]bool, name ast.Expr) {
	if value := text(name); strings.HasPrefix(value, "ration_") {
		registered[value] = true
	}
}

func TestProblemsAreDocumented(t *testing.T) {
	t.Parallel()
	reasons := map[string]bool{}
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
			if kind != nil && kind.Name == "Reason" || selector != nil && selector.Sel.Name == "Reason" {
				for _, value := range spec.Values {
					reasons[text(value)] = true
				}
			}
			return true
		})
	}
	headings := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^### ([a-z-]+)$`).FindAllStringSubmatch(read(t, "docs/reference/problems.md"), -1) {
		headings[match[1]] = true
	}
	compare(t, reasons, headings, "problem", "docs/reference/problems.md")
}

// literals joins every string of the module's Go code. Names in comments bind
// nobody.
func literals(t *testing.T) string {
	t.Helper()
	var all []string
	for _, file := range goFiles(t) {
		ast.Inspect(file.File, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				all = append(all, text(literal))
			}
			return true
		})
	}
	return strings.Join(all, "\n")
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
