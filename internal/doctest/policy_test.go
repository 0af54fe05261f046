package doctest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rationhq/ration/internal/doctest"
	"github.com/rationhq/ration/policy"
)

func TestPoliciesOfTheGuidesAreValid(t *testing.T) {
	t.Parallel()
	for _, example := range shownPolicies(t) {
		if _, err := policy.ParseChange([]byte(example.Text)); err != nil {
			t.Errorf("%s: %v", example.Name, err)
		}
	}
}

// What `ration dev` installs is explained somewhere, as it is.
func TestExamplePoliciesAreInAGuide(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	for _, example := range shownPolicies(t) {
		shown[example.Text] = true
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
		if !shown[string(content)] {
			t.Errorf("%s stands in no guide as it is", filepath.Base(file))
		}
	}
}

// shownPolicies gives the policies that guides show.
func shownPolicies(t *testing.T) []doctest.Block {
	t.Helper()
	guides, err := doctest.Guides()
	if err != nil {
		t.Fatal(err)
	}
	var policies []doctest.Block
	for _, page := range guides {
		policies = append(policies, blocks(t, page, "json")...)
	}
	if len(policies) == 0 {
		t.Fatal("no guide shows a policy")
	}
	return policies
}
