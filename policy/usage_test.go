package policy

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseUsage(t *testing.T) {
	t.Parallel()
	got, err := ParseUsage(url.Values{
		"verifiedAccount": {"A"}, "user": {"ü\"\n"}, "apiKey": {"k"}, "oauthToken": {"o"}, "ip": {"[2001:DB8:0::1]:443"},
		"targetAccount": {" Victim@Example.org"}, "plan": {"standard"}, "region": {"eu"}, "operation": {"report.create"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &Request{Values: [AttributeCount]string{
		Account: "A", User: "ü\"\n", APIKey: "k", OAuthToken: "o", IP: "2001:db8::1", TargetAccount: "victim@example.org",
		Plan: "standard", Region: "eu", Operation: "report.create",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, identity := range identities {
		if _, err := ParseUsage(url.Values{identity.RequestMember(): {"192.0.2.1"}}); err != nil {
			t.Errorf("%s alone: %v", identity, err)
		}
	}
}

func TestParseUsageNamesEveryFault(t *testing.T) {
	t.Parallel()
	for query, pointers := range map[string][]string{
		"":                              {""},
		"plan=p&operation=a&region=eu":  {""},
		"user=u&user=u":                 {"/user"},
		"user=u&cost=1&peek=true&User=": {"/User", "/cost", "/peek"},
		"user=u&account=A":              {"/account"},
		"user=u&x%2Fy~=1":               {"/x~1y~0"},
		"user=u&%ff=1":                  {"/\ufffd"},
		"user=&ip=unknown&operation=Report&plan=a%00&region=%ff&targetAccount=%20&verifiedAccount=" + strings.Repeat("x", 257): {
			"/ip", "/operation", "/plan", "/region", "/targetAccount", "/user", "/verifiedAccount",
		},
	} {
		parameters, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ParseUsage(parameters)
		wantFaults(t, err, ReasonInvalidRequest, pointers...)
	}
	_, err := ParseUsage(map[string][]string{"user": {}})
	wantFaults(t, err, ReasonInvalidRequest, "/user")
}

func FuzzParseUsage(f *testing.F) {
	for _, seed := range []string{
		"verifiedAccount=A&operation=report.create", "ip=%5B::1%5D:80&targetAccount=%EF%AC%81", "user=u&user=v&cost=1", "plan=%ff", "user=%00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		parameters, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		request, err := ParseUsage(parameters)
		if err != nil {
			if len(pointersOf(t, err, ReasonInvalidRequest)) == 0 {
				t.Fatalf("an error without a fault: %v", err)
			}
			return
		}
		if request.Values[Operation] == "" {
			request.Values[Operation] = "a" // which alone may be left out
		}
		checkCanonical(t, request)
	})
}

func TestMatchUsageFindsEveryLimitOfACaller(t *testing.T) {
	t.Parallel()
	policies := []*Installed{
		install("account", Spec{Per: []Attribute{Account}, Costs: Costs{Default: 2, Operations: map[string]int64{"b": 9}}}),
		install("by-a", Spec{Match: Match{Operation: {"a"}}, Per: []Attribute{Account, Operation}, OnMissing: Reject}),
		install("gold", Spec{Match: Match{Plan: {"gold"}}, Per: []Attribute{Account}}),
		install("off", Spec{Per: []Attribute{Account}, Mode: Disabled}),
		install("of-b", Spec{Match: Match{Operation: {"b"}, Account: {"A*"}}, Per: []Attribute{Account}, Mode: Shadow}),
		install("of-b-else", Spec{Match: Match{Operation: {"b"}, Account: {"B"}}, Per: []Attribute{Account}}),
		install("per-ip", Spec{Per: []Attribute{IP}}),
		install("sign-in", Spec{Match: Match{Operation: {"sign-*"}}}),
	}
	set := Compile(1, policies)
	var m Matched
	for operation, want := range map[string]struct{ checks, missing []string }{
		"":  {[]string{"account 2", "of-b 1", "sign-in 1"}, []string{"by-a operation", "per-ip ip"}},
		"a": {[]string{"account 2", "by-a 1"}, []string{"per-ip ip"}},
		"b": {[]string{"account 9", "of-b 1"}, []string{"per-ip ip"}},
		"c": {[]string{"account 2"}, []string{"per-ip ip"}},
	} {
		request := &Request{Values: [AttributeCount]string{Account: "A1", Operation: operation}}
		if err := set.MatchUsage(request, &m); err != nil {
			t.Errorf("%q: %v", operation, err)
			continue
		}
		var checks, missing []string
		for _, check := range m.Checks {
			checks = append(checks, fmt.Sprint(check.Policy.ID, " ", check.Cost))
			if check.Key != KeyOf(check.Policy.ID, check.Policy.Spec, &request.Values) {
				t.Errorf("%q: %s is looked at under another key", operation, check.Policy.ID)
			}
		}
		for _, skipped := range m.Skipped {
			missing = append(missing, skipped.Policy.ID+" "+skipped.Attribute.String())
		}
		if !slices.Equal(checks, want.checks) || !slices.Equal(missing, want.missing) {
			t.Errorf("%q: got %v, missing %v, want %v, %v", operation, checks, missing, want.checks, want.missing)
		}
	}
	if err := Compile(1, nil).MatchUsage(&Request{}, &m); err != nil || len(m.Checks)+len(m.Skipped) != 0 {
		t.Errorf("nothing limits: got %v, %v, error %v", m.Checks, m.Skipped, err)
	}
}

func TestMatchUsageTellsOfAtMost256Policies(t *testing.T) {
	t.Parallel()
	for count, ok := range map[int]bool{256: true, 257: false} {
		var policies []*Installed
		for i := range count {
			// Half of them lack something; a switched off one is told of nowhere.
			spec := Spec{Match: Match{Operation: {"op" + fmt.Sprint(i)}}}
			if i%2 == 0 {
				spec.Per = []Attribute{Operation}
			}
			policies = append(policies, install(fmt.Sprint("p", i), spec), install(fmt.Sprint("off", i), Spec{Mode: Disabled}))
		}
		set := Compile(1, policies)
		var m Matched
		err := set.MatchUsage(&Request{Values: [AttributeCount]string{User: "u"}}, &m)
		switch {
		case !ok:
			wantFaults(t, err, ReasonTooManyPolicies)
		case err != nil || len(m.Checks)+len(m.Skipped) != count:
			t.Errorf("got %d checks and %d missing of %d policies, error %v", len(m.Checks), len(m.Skipped), count, err)
		}
		if err := set.MatchUsage(&Request{Values: [AttributeCount]string{User: "u", Operation: "op0"}}, &m); err != nil {
			t.Errorf("of one operation: %v", err)
		}
	}
}

func TestMatchUsageAgreesWithANaiveScan(t *testing.T) {
	t.Parallel()
	var m Matched
	rapid.Check(t, func(t *rapid.T) {
		policies := drawPolicies(t)
		set := Compile(1, policies)
		slices.SortFunc(policies, func(a, b *Installed) int { return strings.Compare(a.ID, b.ID) })
		request := &Request{Values: [AttributeCount]string{Account: drawName(t, "account"), IP: drawAddress(t, "ip").String()}}
		if rapid.Bool().Draw(t, "with plan") {
			request.Values[Plan] = drawName(t, "plan")
		}
		if rapid.Bool().Draw(t, "with operation") {
			request.Values[Operation] = drawName(t, "operation")
		}
		var checks, missing []string
		for _, policy := range policies {
			spec := *policy.Spec
			if request.Values[Operation] == "" {
				spec.Match[Operation] = nil
			}
			switch {
			case spec.Mode == Disabled || !naiveMatches(&spec, &request.Values):
			case len(spec.Per) > 0 && request.Values[Plan] == "":
				missing = append(missing, policy.ID)
			default:
				checks = append(checks, policy.ID)
			}
		}
		if err := set.MatchUsage(request, &m); err != nil {
			t.Fatal(err)
		}
		var gotMissing []string
		for _, skipped := range m.Skipped {
			gotMissing = append(gotMissing, skipped.Policy.ID)
		}
		if diff := cmp.Diff([][]string{checks, missing}, [][]string{idsOf(m.Checks), gotMissing}); diff != "" {
			t.Fatalf("%v: checks and missing (-naive +got):\n%s", request.Values, diff)
		}
	})
}
