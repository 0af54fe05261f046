package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// withMembers is the least policy with further members before its own.
func withMembers(members string) []byte {
	return []byte(`{` + members + `"match":{},"per":["account"],"limit":{"algorithm":"token_bucket","capacity":40,"refillTokens":20,"refillSeconds":1}}`)
}

// withLimit is the least policy with a limit's figures.
func withLimit(capacity, tokens, seconds string) []byte {
	return fmt.Appendf(nil, `{"match":{},"per":[],"limit":{"algorithm":"token_bucket","capacity":%s,"refillTokens":%s,"refillSeconds":%s}}`, capacity, tokens, seconds)
}

func TestParseChangeReadsTheExampleOfTheDesign(t *testing.T) {
	t.Parallel()
	change, err := ParseChange([]byte(`{ "description": "report creation, standard plan",
		"match": { "operations": ["report.create"], "plans": ["standard"], "regions": ["*"] },
		"per": ["operation", "account"],
		"limit": { "algorithm": "token_bucket", "capacity": 40, "refillTokens": 20, "refillSeconds": 1 },
		"costs": { "default": 1, "operations": { "report.create": 5 }, "max": 10 },
		"onStoreDown": { "mode": "local", "instances": 20 },
		"durability": "fast", "mode": "enforce", "scope": "region", "balances": "keep", "reason": "launch" }`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Spec{
		Description: "report creation, standard plan",
		Match:       Match{Operation: {"report.create"}, Plan: {"standard"}, Region: {"*"}},
		Per:         []Attribute{Account, Operation},
		IPPrefix:    IPPrefix{V4: 32, V6: 64},
		Limit:       Limit{Capacity: 40, RefillTokens: Decimal{"20"}, RefillSeconds: Decimal{"1"}, Rate: Rate{N: 1, D: 50_000}},
		Costs:       Costs{Default: 1, Operations: map[string]int64{"report.create": 5}, Max: 10},
		OnStoreDown: StoreDown{Mode: Local, Instances: 20, MaxSeconds: 300},
	}
	if diff := diffSpecs(want, change.Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if change.Balances != Keep || change.Reason != "launch" {
		t.Errorf("got balances %s, reason %q", change.Balances, change.Reason)
	}
}

func TestSpecJSONEchoesTheDefaults(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		string(withLimit("5", "1e-1", "2.50")): `{"match":{},"per":[],"onMissing":"skip",` +
			`"limit":{"algorithm":"token_bucket","capacity":5,"refillTokens":1e-1,"refillSeconds":2.50},` +
			`"costs":{"default":1},"onStoreDown":{"mode":"closed"},"durability":"fast","afterLoss":"idle","mode":"enforce","scope":"region"}`,
		`{"reason":"r","balances":"keep","disclose":true,"onMissing":"reject","afterLoss":"empty","mode":"disabled",` +
			`"onStoreDown":{"mode":"local","capacity":1,"refillTokens":1,"refillSeconds":60,"maxSeconds":9},` +
			`"costs":{"operations":{"b":2,"a":1}},"description":"<\u00fc>","per":["ip"],` +
			`"match":{"ips":["::FFFF:10.0.0.0/104","2001:db8:0::1"],"targetAccounts":[" Admin*"],"operations":["b*","a"]},` +
			`"limit":{"algorithm":"token_bucket","capacity":5,"refillTokens":1,"refillSeconds":1}}`: `{"description":"<ü>",` +
			`"match":{"operations":["b*","a"],"ips":["10.0.0.0/8","2001:db8::1"],"targetAccounts":["admin*"]},"per":["ip"],` +
			`"ipPrefix":{"v4":32,"v6":64},"onMissing":"reject","limit":{"algorithm":"token_bucket","capacity":5,"refillTokens":1,"refillSeconds":1},` +
			`"costs":{"default":1,"operations":{"a":1,"b":2}},` +
			`"onStoreDown":{"mode":"local","capacity":1,"refillTokens":1,"refillSeconds":60,"maxSeconds":9},` +
			`"durability":"fast","afterLoss":"empty","mode":"disabled","scope":"region","disclose":true}`,
		string(withMembers(`"durability":"durable","onStoreDown":{"mode":"open","acceptOpen":true},`)): `{"match":{},"per":["account"],"onMissing":"skip",` +
			`"limit":{"algorithm":"token_bucket","capacity":40,"refillTokens":20,"refillSeconds":1},"costs":{"default":1},` +
			`"onStoreDown":{"mode":"open","maxSeconds":300,"acceptOpen":true},"durability":"durable","mode":"enforce","scope":"region"}`,
	} {
		change, err := ParseChange([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if diff := cmp.Diff(want, string(change.Spec.JSON())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		checkRoundTrip(t, change.Spec)
	}
}

// checkRoundTrip checks that the stored form reads back as the same policy.
func checkRoundTrip(t *testing.T, spec *Spec) {
	t.Helper()
	back, err := ParseSpec(spec.JSON())
	if err != nil {
		t.Fatalf("reading the stored form %s: %v", spec.JSON(), err)
	}
	if diff := cmp.Diff(string(spec.JSON()), string(back.JSON())); diff != "" || !back.Equal(spec) {
		t.Fatalf("the stored form of the stored form (-want +got):\n%s", diff)
	}
	if back.Limit != spec.Limit {
		t.Fatalf("limit %+v came back as %+v", spec.Limit, back.Limit)
	}
}

func TestParseChangeNamesEveryFault(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body     string
		reason   Reason
		pointers []string
	}{
		"form": {
			`{"description":1,"match":[],"per":{},"ipPrefix":1,"onMissing":null,"limit":7,"costs":"1","onStoreDown":"closed",` +
				`"durability":true,"afterLoss":[],"mode":{},"scope":0,"disclose":"true","balances":1,"start":2,"reason":3,"overrides":[]}`,
			ReasonInvalidRequest,
			[]string{
				"/description", "/match", "/per", "/ipPrefix", "/onMissing", "/limit", "/costs", "/onStoreDown", "/durability",
				"/afterLoss", "/mode", "/scope", "/disclose", "/balances", "/start", "/reason", "/overrides",
			},
		},
		"missing": {`{"limit":{}}`, ReasonInvalidRequest, []string{
			"/limit/algorithm", "/match", "/per",
		}},
		"sense": {
			`{"description":"` + strings.Repeat("x", 1001) + `","match":{"operations":["A"],"ips":["10.0.0.1/8","x","::1%eth0","1.2.3.4","1.2.3.4"],` +
				`"plans":["a*b",""],"accounts":["` + strings.Repeat("x", 257) + `","**"],"users":[],"targetAccounts":["\u00a0*","\u00a0","a\u0000"]},` +
				`"per":["ip","ip","nose"],"ipPrefix":{"v4":0,"v6":129},"limit":{"algorithm":"token_bucket","capacity":0,"refillTokens":0,"refillSeconds":-1},` +
				`"costs":{"default":0,"operations":{"A":1,"b":1.5},"max":1e400},"onStoreDown":{"mode":"maybe","instances":0},` +
				`"onMissing":"x","durability":"x","afterLoss":"x","mode":"x","scope":"x","balances":"x","reason":"` + strings.Repeat("x", 1001) + `"}`,
			ReasonPolicyInvalid,
			[]string{
				"/description", "/match/operations/0", "/match/ips/0", "/match/ips/1", "/match/ips/2", "/match/ips/4",
				"/match/plans/0", "/match/plans/1", "/match/accounts/0", "/match/accounts/1", "/match/users", "/match/targetAccounts/0",
				"/match/targetAccounts/1", "/match/targetAccounts/2", "/per/1", "/per/2", "/ipPrefix/v4", "/ipPrefix/v6", "/limit/capacity",
				"/limit/refillTokens", "/limit/refillSeconds", "/costs/default", "/costs/operations/A", "/costs/operations/b", "/costs/max",
				"/onStoreDown/mode", "/onStoreDown/instances", "/onMissing", "/durability", "/afterLoss", "/mode", "/scope", "/balances", "/reason",
			},
		},
		"not yet": {
			string(withMembers(`"scope":"global",`)), ReasonPolicyInvalid, []string{"/scope"},
		},
		"without meaning": {
			string(withMembers(`"ipPrefix":{"v4":24},"durability":"durable","afterLoss":"empty",`)), ReasonPolicyInvalid,
			[]string{"/ipPrefix", "/afterLoss"},
		},
		"KE1": {string(withMembers(`"ipPrefix":{"v4":33,"v6":0},`)), ReasonPolicyInvalid, []string{"/ipPrefix/v4", "/ipPrefix/v6"}},
		"max below default": {
			string(withMembers(`"costs":{"default":3,"max":2},`)), ReasonPolicyInvalid, []string{"/costs/max"},
		},
		"too many patterns": {
			`{"match":{"plans":["` + strings.Repeat(`a","`, 1000) + `b"]},"per":[],"limit":{"algorithm":"token_bucket","capacity":1,"refillTokens":1,"refillSeconds":1}}`,
			ReasonPolicyInvalid, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseChange([]byte(test.body))
			if test.pointers == nil {
				pointers := pointersOf(t, err, test.reason)
				if pointers[len(pointers)-1] != "/match/plans" {
					t.Errorf("the bound on patterns is not named: %q", pointers)
				}
				return
			}
			wantFaults(t, err, test.reason, test.pointers...)
		})
	}
}

func TestParseSpecKnowsNoChangeMembers(t *testing.T) {
	t.Parallel()
	_, err := ParseSpec(withMembers(`"reason":"r","balances":"keep","start":"full",`))
	wantFaults(t, err, ReasonInvalidRequest, "/reason", "/balances", "/start")
}

func TestLimitRate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		capacity, tokens, seconds string
		want                      Rate
	}{
		{"40", "20", "1", Rate{1, 50_000}},
		{"1", "0.1", "1", Rate{1, 10_000_000}},
		{"1", "1", "0.1", Rate{1, 100_000}},
		{"3", "1.5", "1", Rate{3, 2_000_000}},
		{"3", "1", "3", Rate{1, 3_000_000}},
		{"1", "1", "31622400", Rate{1, 31_622_400_000_000}}, // 366 days, the slowest
		{"9007199254740993", "1e15", "1", Rate{1_000_000_000, 1}},
		{"4611686018427387903", "1e6", "1", Rate{1, 1}},
		{"1", "4611686018427387903", "1e-6", Rate{4611686018427387903, 1}},
		{"1", "1.00E+0", "1", Rate{1, 1_000_000}},
	} {
		change, err := ParseChange(withLimit(test.capacity, test.tokens, test.seconds))
		if err != nil {
			t.Errorf("TB(%s, %s/%s): %v", test.capacity, test.tokens, test.seconds, err)
			continue
		}
		if got := change.Spec.Limit.Rate; got != test.want {
			t.Errorf("TB(%s, %s/%s): got rate %v, want %v", test.capacity, test.tokens, test.seconds, got, test.want)
		}
		checkRoundTrip(t, change.Spec)
	}
}

func TestAR4HugeLimits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ capacity, tokens, seconds, pointer string }{
		{"9223372036854775807", "1", "1", "/limit/capacity"},
		{"4611686018427387904", "1e6", "1", "/limit/capacity"},
		{"1e300", "1", "1", "/limit/capacity"},
		{"1e2", "1", "1", "/limit/capacity"},
		{"1.0", "1", "1", "/limit/capacity"},
		{"-1", "1", "1", "/limit/capacity"},
		{"4611686018428", "1", "1", "/limit/capacity"}, // one token more than 2^62 units of 1/1000000
		{"1", "4611686018427387904", "1e-6", "/limit/refillTokens"},
		{"1", "1", "31622400.0000001", "/limit/refillTokens"},
		{"1", "1.000000000000000000000000000000000001", "1", "/limit/refillTokens"},
		{"1", "1", "0.99999999999999999999", "/limit/refillTokens"},
		{"1", "1e999999999", "1", "/limit/refillTokens"},
		{"1", "1", "1e-999999999", "/limit/refillSeconds"},
		{"1", "1e31", "1", "/limit/refillTokens"},
		{"1", "1", "1.0000000000000000000000000000000000000001", "/limit/refillSeconds"},
		{"1", "0e5", "1", "/limit/refillTokens"},
		{"1", "1", "-0", "/limit/refillSeconds"},
		{"1", "1e99999999999999999999999", "1", "/limit/refillTokens"},
	} {
		_, err := ParseChange(withLimit(test.capacity, test.tokens, test.seconds))
		wantFaults(t, err, ReasonPolicyInvalid, test.pointer)
	}
	if _, err := ParseChange(withLimit("4611686018427", "1", "1")); err != nil {
		t.Errorf("the largest capacity at one token a second: %v", err)
	}
	_, err := ParseChange(withLimit(`"1"`, `"1"`, "true"))
	wantFaults(t, err, ReasonInvalidRequest, "/limit/capacity", "/limit/refillTokens", "/limit/refillSeconds")
}

func TestCO1CostAboveCapacityIsLegal(t *testing.T) {
	t.Parallel()
	// Such a request is answered "never"; a limit lowered below a cost must
	// stay installable.
	change, err := ParseChange(withMembers(`"costs":{"default":41,"operations":{"a":4611686018427387903}},`))
	if err != nil {
		t.Fatal(err)
	}
	checkRoundTrip(t, change.Spec)
}

func TestStoreDown(t *testing.T) {
	t.Parallel()
	for rule, pointers := range map[string][]string{
		`{"mode":"closed"}`:                                                 nil,
		`{"mode":"local","instances":"auto"}`:                               nil,
		`{"mode":"local","instances":400}`:                                  nil,
		`{"mode":"open","acceptOpen":true,"maxSeconds":1}`:                  nil,
		`{"mode":"local","capacity":1,"refillTokens":1,"refillSeconds":60}`: nil,

		`{"mode":"local","instances":401}`:                                   {"/onStoreDown/instances"},
		`{"mode":"closed","maxSeconds":1,"acceptOpen":false}`:                {"/onStoreDown/maxSeconds", "/onStoreDown/acceptOpen"},
		`{"mode":"open","instances":2}`:                                      {"/onStoreDown/instances"},
		`{"mode":"local"}`:                                                   {"/onStoreDown"},
		`{"mode":"local","instances":1,"capacity":1}`:                        {"/onStoreDown"},
		`{"mode":"local","capacity":1}`:                                      {"/onStoreDown/refillTokens", "/onStoreDown/refillSeconds"},
		`{"mode":"local","capacity":1,"refillTokens":1,"refillSeconds":1e9}`: {"/onStoreDown/refillTokens"},
		`{"mode":"local","instances":"auto","maxSeconds":86401}`:             {"/onStoreDown/maxSeconds"},
	} {
		change, err := ParseChange(withMembers(`"onStoreDown":` + rule + `,`))
		if pointers == nil {
			if err != nil {
				t.Errorf("%s: %v", rule, err)
				continue
			}
			checkRoundTrip(t, change.Spec)
			continue
		}
		wantFaults(t, err, ReasonPolicyInvalid, pointers...)
	}
	_, err := ParseChange(withMembers(`"onStoreDown":{"instances":"all"},`))
	wantFaults(t, err, ReasonInvalidRequest, "/onStoreDown/instances", "/onStoreDown/mode")
	// The largest cost, not the default, decides what a share must hold.
	_, err = ParseChange(withMembers(`"costs":{"operations":{"a":21}},"onStoreDown":{"mode":"local","instances":20},`))
	wantFaults(t, err, ReasonPolicyInvalid, "/onStoreDown/instances")
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	const notYet, never = "is kept, but not acted upon yet", "is above the capacity"
	for more, want := range map[string][]Warning{
		`"onStoreDown":{"mode":"closed"},`:                   nil,
		`"onStoreDown":{"mode":"open","acceptOpen":true},`:   {{WarnNotActedUpon, "/onStoreDown", notYet}},
		`"onStoreDown":{"mode":"local","instances":"auto"},`: {{WarnNotActedUpon, "/onStoreDown", notYet}},
		`"onStoreDown":{"mode":"open"},`:                     {{WarnOpen, "/onStoreDown", `say "acceptOpen": true`}, {WarnNotActedUpon, "/onStoreDown", notYet}},

		`"costs":{"default":40,"operations":{"a":40},"max":40},`: nil,
		`"costs":{"operations":{"b":42,"fine":1,"a":41}},`:       {{WarnCostAboveLimit, "/costs/operations/a", never}, {WarnCostAboveLimit, "/costs/operations/b", never}},
		`"costs":{"default":41,"max":42},`:                       {{WarnCostAboveLimit, "/costs/default", never}, {WarnCostAboveLimit, "/costs/max", never}},
	} {
		change, err := ParseChange(withMembers(more))
		if err != nil {
			t.Errorf("%s: %v", more, err)
			continue
		}
		fits := func(got, want Warning) bool {
			return got.Name == want.Name && got.Pointer == want.Pointer && strings.Contains(got.Detail, want.Detail)
		}
		if !slices.EqualFunc(change.Warnings, want, fits) {
			t.Errorf("%s: got warnings %v, want %v", more, change.Warnings, want)
		}
	}
}

func TestValidID(t *testing.T) {
	t.Parallel()
	for id, ok := range map[string]bool{
		"a": true, "9": true, "Report-create_v1.2": true, strings.Repeat("x", 64): true,
		"": false, "-a": false, ".": false, "a/b": false, "a b": false, "ä": false, "a\x00": false, strings.Repeat("x", 65): false,
	} {
		if err := ValidID(id); (err == nil) != ok {
			t.Errorf("%q: got error %v, want one: %t", id, err, !ok)
		}
	}
}

func FuzzParseChange(f *testing.F) {
	f.Add(withMembers(`"onStoreDown":{"mode":"open"},"costs":{"operations":{"a":1}},`))
	f.Add(withMembers(`"onStoreDown":{"mode":"local","capacity":1,"refillTokens":0.5,"refillSeconds":1e1},"balances":"keep",`))
	f.Add(withLimit("4611686018427387903", "1e6", "1"))
	f.Add([]byte(`{"match":{"ips":["::ffff:10.0.0.0/104","*"],"targetAccounts":["\ufb01 *"]},"per":["ip","operation"],"limit":{"algorithm":"concurrency"}}`))
	for _, limit := range []string{
		`"fixed_window","limit":4611686018427387903,"windowSeconds":0.001`, `"sliding_window_log","limit":1000,"windowSeconds":9e2`,
		`"sliding_window_counter","limit":72918,"windowSeconds":31622400,"strict":true`, `"concurrency","limit":3,"ttlSeconds":1.500001,"capacity":1`,
	} {
		f.Add(limitedBy(`{"algorithm":` + limit + `}`))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		change, err := ParseChange(body)
		if err != nil {
			reason := ReasonInvalidRequest
			if strings.HasPrefix(err.Error(), string(ReasonPolicyInvalid)) {
				reason = ReasonPolicyInvalid
			}
			if len(pointersOf(t, err, reason)) == 0 {
				t.Fatalf("an error without a fault: %v", err)
			}
			return
		}
		if !isPossible(&change.Spec.Limit) {
			t.Fatalf("accepted an impossible limit: %+v", change.Spec.Limit)
		}
		checkRoundTrip(t, change.Spec)
	})
}

// isPossible says whether a limit keeps the bounds that the stored functions
// rely on.
func isPossible(l *Limit) bool {
	isBucket := l.Algorithm == TokenBucket
	switch {
	case l.Capacity < 1 || l.Capacity > unitsMax,
		isBucket && (l.Rate.N < 1 || l.Rate.D < 1 || l.Capacity > unitsMax/l.Rate.D || l.SpanMicros != 0),
		!isBucket && (l.Rate != Rate{} || l.SpanMicros < 1_000 || l.SpanMicros > 366*86_400*1_000_000),
		l.Algorithm == SlidingWindowCounter && l.Capacity > (1<<61-1)/l.SpanMicros,
		l.Algorithm == SlidingWindowLog && l.Capacity > 1000,
		l.Strict && l.Algorithm != SlidingWindowCounter:
		return false
	}
	return true
}
