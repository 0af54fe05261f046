package policy

import (
	"strings"
	"testing"
)

// ofSpec makes a policy in force of a body.
func ofSpec(t *testing.T, id, body string) *Installed {
	t.Helper()
	change, err := ParseChange([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return &Installed{ID: id, Version: 1, Spec: change.Spec, Mode: change.Spec.Mode}
}

const reviewed = `{"match":{"operations":["report.*"],"plans":["standard"]},"per":["account"],
	"limit":{"algorithm":"token_bucket","capacity":10,"refillTokens":2,"refillSeconds":3}}`

// A policy that others make superfluous is told so, and one that makes others
// so too; each change below makes it another matter, or does not.
func TestReview(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change [2]string // of the policy in force
		names  string    // the warnings
	}{
		{[2]string{"", ""}, "shadowed"}, // the same twice
		{[2]string{`"capacity":10`, `"capacity":9`}, "shadowed"},
		{[2]string{`"capacity":10`, `"capacity":11`}, "shadows"},
		{[2]string{`"refillSeconds":3`, `"refillSeconds":3.1`}, "shadowed"},
		{[2]string{`"refillSeconds":3`, `"refillSeconds":2.9`}, "shadows"},
		{[2]string{`"capacity":10,"refillTokens":2`, `"capacity":9,"refillTokens":3`}, ""},
		{[2]string{`,"plans":["standard"]`, ``}, "shadowed"},
		{[2]string{`"report.*"`, `"*"`}, "shadowed"},
		{[2]string{`"report.*"`, `"report.read"`}, "shadows"},
		{[2]string{`"report.*"`, `"search.*"`}, ""},
		{[2]string{`"report.*"`, `"search.read"`}, ""},
		{[2]string{`"operations":["report.*"],`, ``}, "shadowed"},
		{[2]string{`{"operations"`, `{"accounts":["*"],"operations"`}, "shadowed"}, // who has no account passes both
		{[2]string{`{"operations"`, `{"users":["*"],"operations"`}, "shadows"},
		{[2]string{`["account"]`, `["account","operation"]`}, ""},
		{[2]string{`{"match"`, `{"costs":{"default":2},"match"`}, ""},
		{[2]string{`{"match"`, `{"mode":"disabled","match"`}, ""},
		{[2]string{`{"match"`, `{"mode":"shadow","match"`}, "shadows"},
	} {
		other := ofSpec(t, "other", strings.Replace(reviewed, c.change[0], c.change[1], 1))
		set := Compile(1, []*Installed{other, ofSpec(t, "mine", reviewed)})
		checkReview(t, set, "mine", ofSpec(t, "mine", reviewed).Spec, c.names, c.change[1])
	}
}

// What a policy matches by `*`, and how it cuts addresses, is compared as it
// is meant.
func TestReviewOfWhatIsAlwaysThere(t *testing.T) {
	t.Parallel()
	body := func(match, members string) string {
		return `{"match":` + match + `,"per":["ip"],"limit":{"algorithm":"fixed_window","limit":5,"windowSeconds":60}` + members + `}`
	}
	all := body(`{}`, "")
	for other, want := range map[string]string{
		body(`{"operations":["*"]}`, ""):                          "shadowed", // every request has one
		body(`{"ips":["*"]}`, ""):                                 "shadowed", // without one neither has a key
		body(`{"users":["*"]}`, ""):                               "shadows",
		body(`{"ips":["10.0.0.0/8"]}`, ""):                        "shadows",
		body(`{}`, `,"ipPrefix":{"v4":24,"v6":64}`):               "",
		body(`{}`, `,"ipPrefix":{"v4":32,"v6":64}`):               "shadowed", // as all have that say nothing
		body(`{"ips":["10.0.0.1"]}`, `,"costs":{"default":2}`):    "",
		body(`{"operations":["a"]}`, `,"costs":{"max":2}`):        "",
		body(`{}`, `,"costs":{"default":1,"operations":{"a":2}}`): "",
	} {
		set := Compile(1, []*Installed{ofSpec(t, "other", other)})
		checkReview(t, set, "mine", ofSpec(t, "mine", all).Spec, want, other)
	}
}

func TestReviewOfEveryAlgorithm(t *testing.T) {
	t.Parallel()
	limits := map[string]string{
		"window":  `{"algorithm":"fixed_window","limit":5,"windowSeconds":60}`,
		"hour":    `{"algorithm":"fixed_window","limit":5,"windowSeconds":3600}`,
		"counter": `{"algorithm":"sliding_window_counter","limit":5,"windowSeconds":60}`,
		"strict":  `{"algorithm":"sliding_window_counter","limit":5,"windowSeconds":60,"strict":true}`,
		"slots":   `{"algorithm":"concurrency","limit":5,"ttlSeconds":60}`,
	}
	for name, limit := range limits {
		for other, otherLimit := range limits {
			want := ""
			if name == other {
				want = "shadowed"
			}
			set := Compile(1, []*Installed{ofSpec(t, "other", `{"match":{},"per":["ip"],"limit":`+otherLimit+`}`)})
			checkReview(t, set, "mine", ofSpec(t, "mine", `{"match":{},"per":["ip"],"limit":`+limit+`}`).Spec, want, name+" under "+other)
		}
	}
	long := Compile(1, []*Installed{ofSpec(t, "other", `{"match":{},"per":["ip"],"limit":{"algorithm":"concurrency","limit":5,"ttlSeconds":61}}`)})
	checkReview(t, long, "mine", ofSpec(t, "mine", `{"match":{},"per":["ip"],"limit":`+limits["slots"]+`}`).Spec, "shadowed", "longer slots")
}

func TestReviewNamesSome(t *testing.T) {
	t.Parallel()
	var others []*Installed
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		others = append(others, ofSpec(t, id, reviewed))
	}
	others[0].Overrides = map[Key]Override{{}: {Action: OverrideExempt}} // whom it exempts, only the others limit
	warnings := Compile(1, others).Review("mine", ofSpec(t, "mine", reviewed).Spec)
	if len(warnings) != 2 || !strings.Contains(warnings[0].Detail, "b, c, d, e, f and 1 more") {
		t.Errorf("%+v", warnings)
	}
}

// The tighter policy may block keys, and the other exempt them; any other
// override makes the two differ for its key.
func TestReviewMindsOverrides(t *testing.T) {
	t.Parallel()
	tight, loose := reviewed, strings.Replace(reviewed, `"capacity":10`, `"capacity":11`, 1)
	for action, remains := range map[OverrideAction]string{OverrideBlocked: tight, OverrideExempt: loose, OverrideLimit: ""} {
		for _, c := range []struct{ mine, other, names string }{{tight, loose, "shadows"}, {loose, tight, "shadowed"}} {
			for i, body := range []string{c.mine, c.other} {
				policies := []*Installed{ofSpec(t, "mine", c.mine), ofSpec(t, "other", c.other)}
				policies[i].Overrides = map[Key]Override{{}: {Action: action}}
				want := ""
				if body == remains {
					want = c.names
				}
				checkReview(t, Compile(1, policies), "mine", policies[0].Spec, want, policies[i].ID+" with an override "+action.String()+", "+c.names)
			}
		}
	}
}

func checkReview(t *testing.T, set *Set, id string, spec *Spec, want, what string) {
	t.Helper()
	var names []string
	for _, warning := range set.Review(id, spec) {
		names = append(names, string(warning.Name))
	}
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("%s: warns %q, want %q", what, got, want)
	}
}
