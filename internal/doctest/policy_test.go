package doctest_test

import (
	"testing"

	"github.com/rationhq/ration/policy"
)

func TestPoliciesOfTheGuideAreValid(t *testing.T) {
	t.Parallel()
	for _, example := range blocks(t, "guides/policies.md", "json") {
		if _, err := policy.ParseChange([]byte(example.text)); err != nil {
			t.Errorf("%s: %v", example.name, err)
		}
	}
}
