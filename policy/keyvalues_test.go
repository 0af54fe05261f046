package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rationhq/ration/policy"
)

func TestKeyValues(t *testing.T) {
	t.Parallel()
	spec := policy.Spec{Per: []policy.Attribute{policy.Account, policy.IP}, IPPrefix: policy.IPPrefix{V4: 32, V6: 64}}
	for ip, want := range map[string]string{"192.0.2.1": "192.0.2.1", "2001:db8::1:2": "2001:db8::/64"} {
		values := [policy.AttributeCount]string{policy.Account: "A", policy.IP: ip, policy.User: "nobody's"}
		got := spec.KeyValues(&values)
		if diff := cmp.Diff([]policy.KeyValue{{policy.Account, "A"}, {policy.IP, want}}, got); diff != "" {
			t.Errorf("of %s (-want +got):\n%s", ip, diff)
		}
	}
}
