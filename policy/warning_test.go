package policy

import (
	"strings"
	"testing"
)

// A policy that is fine but absurd is warned of by name, at the member that
// makes it so; the one beside it is not.
func TestAbsurdPoliciesAreWarnedOf(t *testing.T) {
	t.Parallel()
	const bucket = `"limit":{"algorithm":"token_bucket","capacity":100,"refillTokens":1,"refillSeconds":`
	const guarded = `"onMissing":"reject","durability":"durable"`
	for _, c := range []struct {
		body     string
		warnings string // name and pointer of each but that a rule is not acted upon yet
	}{
		{`"match":{},"per":["ip"],` + bucket + `1}`, ""},
		{`"match":{},"per":["ip"],` + bucket + `25920}`, ""}, // 30 days
		{`"match":{},"per":["ip"],` + bucket + `26784}`, "slow-refill /limit/refillSeconds"},
		{`"match":{},"per":["ip"],"limit":{"algorithm":"sliding_window_log","limit":100,"windowSeconds":60}`, ""},
		{`"match":{},"per":["ip"],"limit":{"algorithm":"sliding_window_log","limit":101,"windowSeconds":60}`, "high-log /limit/limit"},
		{`"match":{},"per":["ip"],"limit":{"algorithm":"concurrency","limit":3,"ttlSeconds":86400}`, ""},
		{`"match":{},"per":["ip"],"limit":{"algorithm":"concurrency","limit":3,"ttlSeconds":86401}`, "long-slot /limit/ttlSeconds"},
		{`"match":{},"per":[],"limit":{"algorithm":"fixed_window","limit":99,"windowSeconds":1}`, "few-for-all /limit/limit"},
		{`"match":{},"per":[],` + bucket + `1}`, ""},
		{`"match":{},"per":["ip"],"onStoreDown":{"mode":"local","instances":2,"maxSeconds":3600},` + bucket + `1}`, ""},
		{`"match":{},"per":["ip"],"onStoreDown":{"mode":"local","instances":2,"maxSeconds":3601},` + bucket + `1}`, "long-outage /onStoreDown/maxSeconds"},
		{`"match":{"operations":["auth.login"]},"per":["ip"],` + guarded + `,` + bucket + `1}`, ""},
		{`"match":{},"per":["ip","targetAccount"],` + guarded + `,` + bucket + `1}`, ""},
		{`"match":{},"per":["targetAccount"],"onMissing":"reject","afterLoss":"empty",` + bucket + `1}`, ""},
		{`"match":{"operations":["auth.login*"]},"per":["ip"],` + bucket + `1}`, "login-skip /onMissing, login-fast /durability"},
		{`"match":{},"per":["targetAccount"],` + guarded + `,"onStoreDown":{"mode":"open","acceptOpen":true},` + bucket + `1}`, "login-open /onStoreDown/mode"},
		{`"match":{},"per":["targetAccount"],` + guarded + `,"onStoreDown":{"mode":"open"},` + bucket + `1}`, "open /onStoreDown, login-open /onStoreDown/mode"},
		{`"match":{},"per":["ip"],"costs":{"default":101},` + bucket + `1}`, "cost-above-limit /costs/default"},
	} {
		change, err := ParseChange([]byte("{" + c.body + "}"))
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		var got []string
		for _, warning := range change.Warnings {
			if warning.Name != WarnNotActedUpon {
				got = append(got, string(warning.Name)+" "+warning.Pointer)
			}
			if !strings.Contains(warning.Detail, " ") {
				t.Errorf("%s: %s says %q", c.body, warning.Name, warning.Detail)
			}
		}
		if names := strings.Join(got, ", "); names != c.warnings {
			t.Errorf("%s:\nwarns %q, want %q", c.body, names, c.warnings)
		}
	}
}
