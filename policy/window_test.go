package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// limitedBy is the least policy of a limit.
func limitedBy(limit string) []byte {
	return []byte(`{"match":{},"per":[],"limit":` + limit + `}`)
}

func TestLimitOfEveryAlgorithm(t *testing.T) {
	t.Parallel()
	for limit, test := range map[string]struct {
		want   Limit
		stored string // "": as given
	}{
		`{"algorithm":"fixed_window","limit":10,"windowSeconds":60}`: {
			want: Limit{Algorithm: FixedWindow, Capacity: 10, Span: Decimal{"60"}, SpanMicros: 60_000_000},
		},
		`{"windowSeconds":0.25,"limit":10,"algorithm":"fixed_window"}`: {
			want:   Limit{Algorithm: FixedWindow, Capacity: 10, Span: Decimal{"0.25"}, SpanMicros: 250_000},
			stored: `{"algorithm":"fixed_window","limit":10,"windowSeconds":0.25}`,
		},
		`{"algorithm":"sliding_window_counter","limit":100,"windowSeconds":6e1}`: {
			want:   Limit{Algorithm: SlidingWindowCounter, Capacity: 100, Span: Decimal{"6e1"}, SpanMicros: 60_000_000},
			stored: `{"algorithm":"sliding_window_counter","limit":100,"windowSeconds":6e1,"strict":false}`,
		},
		`{"algorithm":"sliding_window_counter","strict":true,"limit":100,"windowSeconds":60}`: {
			want:   Limit{Algorithm: SlidingWindowCounter, Capacity: 100, Span: Decimal{"60"}, SpanMicros: 60_000_000, Strict: true},
			stored: `{"algorithm":"sliding_window_counter","limit":100,"windowSeconds":60,"strict":true}`,
		},
		`{"algorithm":"sliding_window_log","limit":5,"windowSeconds":900}`: {
			want: Limit{Algorithm: SlidingWindowLog, Capacity: 5, Span: Decimal{"900"}, SpanMicros: 900_000_000},
		},
		`{"algorithm":"concurrency","limit":3,"ttlSeconds":1.500001}`: {
			want: Limit{Algorithm: Concurrency, Capacity: 3, Span: Decimal{"1.500001"}, SpanMicros: 1_500_001},
		},
	} {
		change, err := ParseChange(limitedBy(limit))
		if err != nil {
			t.Errorf("%s: %v", limit, err)
			continue
		}
		if diff := cmp.Diff(test.want, change.Spec.Limit, cmp.AllowUnexported(Decimal{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", limit, diff)
		}
		if test.stored == "" {
			test.stored = limit
		}
		if stored := string(change.Spec.JSON()); !strings.Contains(stored, `"limit":`+test.stored+`,"costs"`) {
			t.Errorf("%s: got stored form %s, want the limit as %s", limit, stored, test.stored)
		}
		checkRoundTrip(t, change.Spec)
	}
}

func TestLimitTakesTheMembersOfItsAlgorithm(t *testing.T) {
	t.Parallel()
	const bucket, window = `"capacity":1,"refillTokens":1,"refillSeconds":1`, `"limit":1,"windowSeconds":1`
	meaningless := func(algorithm string) string { return "has no meaning for " + algorithm }
	for limit, want := range map[string][]Fault{
		`{"algorithm":"token_bucket",` + bucket + `,` + window + `,"ttlSeconds":1,"strict":false}`: {
			{"/limit/limit", meaningless("token_bucket")},
			{"/limit/windowSeconds", meaningless("token_bucket")},
			{"/limit/ttlSeconds", meaningless("token_bucket")},
			{"/limit/strict", meaningless("token_bucket")},
		},
		`{"algorithm":"fixed_window",` + bucket + `,` + window + `,"strict":true}`: {
			{"/limit/capacity", meaningless("fixed_window")},
			{"/limit/refillTokens", meaningless("fixed_window")},
			{"/limit/refillSeconds", meaningless("fixed_window")},
			{"/limit/strict", meaningless("fixed_window")},
		},
		`{"algorithm":"sliding_window_log",` + window + `,"strict":true}`:      {{"/limit/strict", meaningless("sliding_window_log")}},
		`{"algorithm":"sliding_window_counter",` + window + `,"ttlSeconds":1}`: {{"/limit/ttlSeconds", meaningless("sliding_window_counter")}},
		`{"algorithm":"concurrency","ttlSeconds":1,` + window + `}`:            {{"/limit/windowSeconds", meaningless("concurrency")}},
		// What is wrong by itself is told as well.
		`{"algorithm":"fixed_window","limit":0,"windowSeconds":60,"capacity":1}`: {
			{"/limit/limit", "must be at least 1"}, {"/limit/capacity", meaningless("fixed_window")},
		},
		// An algorithm that does not exist says nothing of its members.
		`{"algorithm":"leaky_bucket","limit":1,"capacity":1}`: {
			{"/limit/algorithm", "must be one of token_bucket, fixed_window, sliding_window_counter, sliding_window_log, concurrency"},
		},
	} {
		_, err := ParseChange(limitedBy(limit))
		wantFaultsSaid(t, limit, err, ReasonPolicyInvalid, want)
	}
	for limit, want := range map[string][]Fault{
		`{"algorithm":"fixed_window"}`:           {{"/limit/limit", "is required"}, {"/limit/windowSeconds", "is required"}},
		`{"algorithm":"sliding_window_counter"}`: {{"/limit/limit", "is required"}, {"/limit/windowSeconds", "is required"}},
		`{"algorithm":"sliding_window_log"}`:     {{"/limit/limit", "is required"}, {"/limit/windowSeconds", "is required"}},
		`{"algorithm":"concurrency","limit":1}`:  {{"/limit/ttlSeconds", "is required"}},
		`{"algorithm":"token_bucket","limit":1}`: {
			{"/limit/capacity", "is required"},
			{"/limit/refillTokens", "is required"},
			{"/limit/refillSeconds", "is required"},
			{"/limit/limit", meaningless("token_bucket")},
		},
		`{"algorithm":"sliding_window_counter",` + window + `,"strict":"yes"}`: {{"/limit/strict", "must be true or false"}},
		`{"algorithm":"fixed_window","limit":"1","windowSeconds":true,"window":1}`: {
			{"/limit/limit", "must be a number, not text"},
			{"/limit/windowSeconds", "must be a number"},
			{"/limit/window", "is not a known member"},
		},
		`{"algorithm":7,"limit":1}`: {{"/limit/algorithm", "must be text"}},
	} {
		_, err := ParseChange(limitedBy(limit))
		wantFaultsSaid(t, limit, err, ReasonInvalidRequest, want)
	}
}

// wantFaultsSaid checks an error's faults with their words.
func wantFaultsSaid(t *testing.T, of string, err error, reason Reason, want []Fault) {
	t.Helper()
	failure, ok := errors.AsType[*Error](err)
	if !ok || failure.Reason != reason {
		t.Errorf("%s: got error %v, want one of reason %s", of, err, reason)
		return
	}
	if diff := cmp.Diff(want, failure.Faults); diff != "" {
		t.Errorf("%s (-want +got):\n%s", of, diff)
	}
}

func TestWindowBounds(t *testing.T) {
	t.Parallel()
	for limit, pointer := range map[string]string{
		`"fixed_window","limit":4611686018427387903,"windowSeconds":31622400`:              "",
		`"fixed_window","limit":4611686018427387904,"windowSeconds":1`:                     "/limit/limit",
		`"fixed_window","limit":9223372036854775808,"windowSeconds":1`:                     "/limit/limit",
		`"fixed_window","limit":1,"windowSeconds":0.001`:                                   "",
		`"fixed_window","limit":1,"windowSeconds":0.000999`:                                "/limit/windowSeconds",
		`"fixed_window","limit":1,"windowSeconds":31622400.000001`:                         "/limit/windowSeconds",
		`"fixed_window","limit":1,"windowSeconds":0.0010001`:                               "/limit/windowSeconds",
		`"fixed_window","limit":1,"windowSeconds":1.0000000`:                               "",
		`"fixed_window","limit":1,"windowSeconds":0`:                                       "/limit/windowSeconds",
		`"fixed_window","limit":1,"windowSeconds":-60`:                                     "/limit/windowSeconds",
		`"fixed_window","limit":1,"windowSeconds":1e30`:                                    "/limit/windowSeconds",
		`"fixed_window","limit":1.5,"windowSeconds":1`:                                     "/limit/limit",
		`"sliding_window_counter","limit":2305843009213,"windowSeconds":1`:                 "", // 2^61 / 10^6
		`"sliding_window_counter","limit":2305843009214,"windowSeconds":1`:                 "/limit/limit",
		`"sliding_window_counter","limit":2305843009214,"windowSeconds":1,"strict":true`:   "/limit/limit",
		`"sliding_window_counter","limit":72918,"windowSeconds":31622400`:                  "",
		`"sliding_window_counter","limit":72919,"windowSeconds":31622400`:                  "/limit/limit",
		`"sliding_window_counter","limit":4611686018427387903,"windowSeconds":1`:           "/limit/limit",
		`"sliding_window_log","limit":1000,"windowSeconds":31622400`:                       "",
		`"sliding_window_log","limit":1001,"windowSeconds":1`:                              "/limit/limit",
		`"concurrency","limit":10000,"ttlSeconds":0.001`:                                   "",
		`"concurrency","limit":10001,"ttlSeconds":1`:                                       "/limit/limit",
		`"concurrency","limit":4611686018427387903,"ttlSeconds":1`:                         "/limit/limit",
		`"concurrency","limit":1,"ttlSeconds":0.0009`:                                      "/limit/ttlSeconds",
		`"concurrency","limit":1,"ttlSeconds":31622401`:                                    "/limit/ttlSeconds",
		`"concurrency","limit":1,"ttlSeconds":0.12345678901234567890123456789012345678901`: "/limit/ttlSeconds",
	} {
		change, err := ParseChange(limitedBy(`{"algorithm":` + limit + `}`))
		if pointer != "" {
			if err == nil {
				t.Errorf("%s: is accepted", limit)
				continue
			}
			wantFaults(t, err, ReasonPolicyInvalid, pointer)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", limit, err)
			continue
		}
		checkRoundTrip(t, change.Spec)
	}
}

func TestShadowAndLocalRuleGoWithEveryAlgorithm(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{
		`{"algorithm":"token_bucket","capacity":4611686018427,"refillTokens":1,"refillSeconds":1}`,
		`{"algorithm":"fixed_window","limit":4611686018427387903,"windowSeconds":1}`,
		`{"algorithm":"sliding_window_counter","limit":2305843009213,"windowSeconds":1,"strict":true}`,
		`{"algorithm":"sliding_window_log","limit":1000,"windowSeconds":1}`,
		`{"algorithm":"concurrency","limit":10000,"ttlSeconds":60}`,
	} {
		for _, rule := range []string{
			`{"mode":"local","instances":100}`, `{"mode":"local","instances":"auto"}`, `{"mode":"open","acceptOpen":true}`,
			`{"mode":"local","capacity":1,"refillTokens":1,"refillSeconds":60}`,
		} {
			body := `{"match":{},"per":["ip"],"mode":"shadow","durability":"durable","disclose":true,"onMissing":"reject","limit":` + limit + `,"onStoreDown":` + rule + `}`
			change, err := ParseChange([]byte(body))
			if err != nil {
				t.Errorf("%s: %v", body, err)
				continue
			}
			if change.Spec.Mode != Shadow {
				t.Errorf("%s: got mode %s", body, change.Spec.Mode)
			}
			checkRoundTrip(t, change.Spec)
		}
	}
	_, err := ParseChange([]byte(`{"match":{},"per":[],"limit":{"algorithm":"concurrency","limit":1,"ttlSeconds":60},"onStoreDown":{"mode":"local","instances":11}}`))
	wantFaultsSaid(t, "eleven slots for one", err, ReasonPolicyInvalid,
		[]Fault{{"/onStoreDown/instances", "times the largest cost must be at most ten times the limit"}})
}

func TestCostsAboveAnyLimitAreWarnedOf(t *testing.T) {
	t.Parallel()
	for limit, member := range map[string]string{
		`{"algorithm":"token_bucket","capacity":5,"refillTokens":1,"refillSeconds":1}`: "capacity",
		`{"algorithm":"fixed_window","limit":5,"windowSeconds":1}`:                     "limit",
		`{"algorithm":"sliding_window_counter","limit":5,"windowSeconds":1}`:           "limit",
		`{"algorithm":"sliding_window_log","limit":5,"windowSeconds":1}`:               "limit",
		`{"algorithm":"concurrency","limit":5,"ttlSeconds":1}`:                         "limit",
	} {
		change, err := ParseChange([]byte(`{"match":{},"per":["ip"],"limit":` + limit + `,"costs":{"default":5,"operations":{"a":6}}}`))
		if err != nil {
			t.Errorf("%s: %v", limit, err)
			continue
		}
		want := []Warning{{WarnCostAboveLimit, "/costs/operations/a", "is above the " + member + ": such a request is never allowed; raise the " + member + " or lower the cost"}}
		if diff := cmp.Diff(want, change.Warnings); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", limit, diff)
		}
	}
}
