package doctest_test

import (
	"regexp"
	"strings"
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

var curlBody = regexp.MustCompile(`(?s)-d '(\{.*?\})'`)

func TestBodiesOfTheStartAreValid(t *testing.T) {
	t.Parallel()
	bodies := 0
	for _, example := range blocks(t, "start.md", "sh") {
		for _, match := range curlBody.FindAllStringSubmatch(example.text, -1) {
			bodies++
			var err error
			if strings.Contains(example.text, "/v1/policies/") {
				_, err = policy.ParseChange([]byte(match[1]))
			} else {
				_, err = policy.ParseRequest([]byte(match[1]))
			}
			if err != nil {
				t.Errorf("%s: %v", example.name, err)
			}
		}
	}
	if bodies == 0 {
		t.Error("no curl command with a body")
	}
}
