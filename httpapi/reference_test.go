package httpapi_test

import (
	"os"
	"regexp"
	"testing"
)

// The reference has every route, with who may call it.
func TestRoutesAreInTheReference(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for route, role := range adminRoutes {
		want[route] = role.String()
	}
	for route := range decisionRoutes {
		want[route] = "gateway"
	}
	page, err := os.ReadFile("../docs/reference/http.md")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /[^`]+)` \\| ([a-z]+) \\|").FindAllStringSubmatch(string(page), -1) {
		got[row[1]] = row[2]
	}
	for route, who := range want {
		if got[route] != who {
			t.Errorf("%s is for %s; docs/reference/http.md says %q", route, who, got[route])
		}
	}
	for route := range got {
		if want[route] == "" {
			t.Errorf("docs/reference/http.md has %s, no listener does", route)
		}
	}
}
