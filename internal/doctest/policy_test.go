package doctest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rationhq/ration/internal/doctest"
	"github.com/rationhq/ration/policy"
)

func TestPoliciesOfTheGuidesAreValid(t *testing.T) {
	t.Parallel()
	policies := 0
	for _, page := range doctest.Guides(t) {
		for _, example := range doctest.Blocks(t, page, "json") {
			policies++
			if _, err := policy.ParseChange([]byte(example.Text)); err != nil {
				t.Errorf("%s: %v", example.Name, err)
			}
		}
	}
	if policies == 0 {
		t.Error("no guide shows a policy")
	}
}

// What `ration dev` installs is explained somewhere, as it is.
func TestExamplePoliciesAreInAGuide(t *testing.T) {
	t.Parallel()
	var shown strings.Builder
	for _, page := range doctest.Guides(t) {
		for _, example := range doctest.Blocks(t, page, "json") {
			shown.WriteString(example.Text)
		}
	}
	files, err := filepath.Glob("../../cmd/ration/examples/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no example policies: %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(shown.String(), string(content)) {
			t.Errorf("%s stands in no guide as it is", filepath.Base(file))
		}
	}
}
