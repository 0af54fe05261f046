package policy_test

import (
	"strings"
	"testing"

	"github.com/rationhq/ration/policy"
)

func TestCanonicalValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		attribute   policy.Attribute
		text, value string
		fault       string // has to be in the error
	}{
		{attribute: policy.IP, text: "[::ffff:192.0.2.1]:443", value: "192.0.2.1"},
		{attribute: policy.IP, text: "fe80::1%eth0", fault: "zone"},
		{attribute: policy.TargetAccount, text: " Alice ", value: "alice"},
		{attribute: policy.Account, text: ` "A"\ `, value: ` "A"\ `},
		{attribute: policy.Account, text: "", fault: "1 to 256 bytes"},
		{attribute: policy.Account, text: "\xff", fault: "UTF-8"},
		{attribute: policy.Operation, text: "GET /", fault: "must match"},
		{attribute: policy.Operation, text: "report.create", value: "report.create"},
	} {
		value, err := policy.CanonicalValue(c.attribute, c.text)
		if c.fault == "" && (err != nil || value != c.value) {
			t.Errorf("%s %q is %q, %v, want %q", c.attribute, c.text, value, err, c.value)
		}
		if c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s %q: %v, want %q in it", c.attribute, c.text, err, c.fault)
		}
	}
}
