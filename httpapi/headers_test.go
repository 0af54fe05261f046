package httpapi

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rationhq/ration/policy"
)

// The grammar of the two fields, from RFC 9651 and the draft, read apart from
// the encoder.
const (
	structuredString  = `"((?:[ !#-\[\]-~]|\\["\\])*)"`
	structuredInteger = `([0-9]{1,15})`
)

func FuzzRateLimitFields(f *testing.F) {
	f.Add("report-create", int64(40), int64(35), int64(250_000), int64(1), int64(50_000), true)
	f.Add("a\"b\\c\xffé\n", int64(1)<<50, int64(-5), int64(1)<<62, int64(1), int64(2000), false)
	f.Add("slow", int64(1), int64(0), int64(366*86_400)*1_000_000, int64(1), int64(366*86_400)*1_000_000, false)
	policyField := regexp.MustCompile(`^` + structuredString + `;q=` + structuredInteger + `(?:;w=` + structuredInteger + `)?$`)
	field := regexp.MustCompile(`^` + structuredString + `;r=` + structuredInteger + `(?:;t=` + structuredInteger + `)?$`)
	f.Fuzz(func(t *testing.T, id string, capacity, remaining, resetAfter, n, d int64, permitted bool) {
		if capacity < 1 || n < 1 || d < 1 || capacity > (1<<62-1)/d || remaining > capacity || resetAfter < 0 {
			t.Skip("no policy and no store can say this")
		}
		decision := policy.Decision{
			Policy:  &policy.Installed{ID: id, Spec: &policy.Spec{Disclose: true, Limit: policy.Limit{Capacity: capacity, Rate: policy.Rate{N: n, D: d}}}},
			Allowed: permitted, Remaining: max(0, remaining), ResetAfterMicros: resetAfter, RetryAfterMicros: 1,
		}
		waitSeconds := int64(1)
		if permitted {
			waitSeconds = 0
		}
		var fields fields
		fields.addDecisionFields(&decision, ResetDelta, waitSeconds)
		header := make(http.Header)
		fields.writeTo(header)

		stated := policyField.FindStringSubmatch(header.Get("RateLimit-Policy"))
		left := field.FindStringSubmatch(header.Get("RateLimit"))
		if stated == nil || left == nil {
			t.Fatalf("malformed: %q, %q", header.Get("RateLimit-Policy"), header.Get("RateLimit"))
		}
		if stated[1] != left[1] {
			t.Errorf("the fields name %q and %q", stated[1], left[1])
		}
		if stated[3] == "0" {
			t.Error("a window of 0 seconds")
		}
		if full := decision.Remaining == capacity; full != (left[3] == "") {
			t.Errorf("full: %v, but t=%q", full, left[3])
		}
		if !permitted && left[3] != "" && left[3] != "0" && left[3] != "1" {
			t.Errorf("t=%s is later than Retry-After 1", left[3])
		}
	})
}

// TestNextTokenIsNeverEarly compares t with the wait worked out from the
// balance itself, for rates that do not divide a second.
func TestNextTokenIsNeverEarly(t *testing.T) {
	t.Parallel()
	for _, rate := range []policy.Rate{{N: 1, D: 50_000}, {N: 3, D: 1_000_000}, {N: 7, D: 1_000_000}, {N: 7, D: 3}, {N: 1, D: 86_400_000_000}} {
		const capacity = 5
		for balance := int64(0); balance < capacity*rate.D; balance += 1 + rate.D/97 {
			remaining := balance / rate.D
			part := policy.DecisionPart{
				Policy:  &policy.Installed{Spec: &policy.Spec{Limit: policy.Limit{Capacity: capacity, Rate: rate}}},
				Allowed: true, Remaining: remaining, ResetAfterMicros: ceilDiv(capacity*rate.D-balance, rate.N),
			}
			exact := ceilDiv((remaining+1)*rate.D-balance, rate.N)
			if got := nextMicros(&part); got < exact || got > exact+1 {
				t.Fatalf("rate %+v, balance %d: %d µs, want %d or one more", rate, balance, got, exact)
			}
		}
	}
}

func TestWindowIsTheTimeToFill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		capacity int64
		rate     policy.Rate
		want     string
	}{
		{40, policy.Rate{N: 1, D: 50_000}, `"p";q=40;w=2`},
		{10, policy.Rate{N: 3, D: 1_000_000}, `"p";q=10;w=3`},
		{11, policy.Rate{N: 3, D: 1_000_000}, `"p";q=11;w=4`},
		{9, policy.Rate{N: 1, D: 100_000}, `"p";q=9`},
		{1, policy.Rate{N: 1, D: 1_000_000}, `"p";q=1;w=1`},
		{1 << 60, policy.Rate{N: 1, D: 1}, fmt.Sprintf(`"p";q=%s;w=%d`, strconv.Itoa(structuredIntegerMax), (1<<60+500_000)/1_000_000)},
	} {
		spec := &policy.Spec{Disclose: true, Limit: policy.Limit{Capacity: c.capacity, Rate: c.rate}}
		var fields fields
		fields.addDecisionFields(&policy.Decision{Policy: &policy.Installed{ID: "p", Spec: spec}, Allowed: true}, ResetOff, 0)
		header := make(http.Header)
		fields.writeTo(header)
		if got := header.Get("RateLimit-Policy"); got != c.want {
			t.Errorf("capacity %d at %+v: %s, want %s", c.capacity, c.rate, got, c.want)
		}
	}
}

func TestWindowsOfTheOtherAlgorithms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		algorithm  policy.Algorithm
		spanMicros int64
		want       int64
	}{
		{policy.FixedWindow, 86_400_000_000, 86_400},
		{policy.SlidingWindowCounter, 60_500_000, 61},
		{policy.SlidingWindowLog, 1_000_000, 1},
		{policy.SlidingWindowLog, 999_999, 0},
		{policy.Concurrency, 60_000_000, 0},
	} {
		if got := windowSeconds(&policy.Limit{Algorithm: c.algorithm, Capacity: 5, SpanMicros: c.spanMicros}); got != c.want {
			t.Errorf("%v of %d µs: w=%d, want %d", c.algorithm, c.spanMicros, got, c.want)
		}
	}
}

func TestHeadersTellOnlyOfLimitsThatHold(t *testing.T) {
	t.Parallel()
	own := []policy.Attribute{policy.Account}
	for _, c := range []struct {
		spec policy.Spec
		want bool
	}{
		{policy.Spec{Per: own}, true},
		{policy.Spec{Per: own, Mode: policy.Shadow}, false},
		{policy.Spec{Per: own, Mode: policy.Disabled}, false},
		{policy.Spec{Per: []policy.Attribute{policy.TargetAccount}}, false},
		{policy.Spec{Disclose: true}, true},
		{policy.Spec{Disclose: true, Mode: policy.Shadow}, false},
	} {
		if got := inHeaders(&policy.Installed{Spec: &c.spec, Mode: c.spec.Mode}); got != c.want {
			t.Errorf("per %v, disclose %v, mode %v: in headers %v, want %v", c.spec.Per, c.spec.Disclose, c.spec.Mode, got, c.want)
		}
	}
}

// TestHeadersOfSeveralPolicies: a client is told of every limit that is its
// own, and of the tightest what is left.
func TestHeadersOfSeveralPolicies(t *testing.T) {
	t.Parallel()
	limit := policy.Limit{Algorithm: policy.FixedWindow, Capacity: 10, SpanMicros: 60_000_000}
	part := func(id string, remaining, retryAfter int64, spec policy.Spec) policy.DecisionPart {
		spec.Limit = limit
		return policy.DecisionPart{
			Policy: &policy.Installed{ID: id, Spec: &spec, Mode: spec.Mode}, Allowed: retryAfter == 0,
			Remaining: remaining, RetryAfterMicros: retryAfter, ResetAfterMicros: 30_000_000,
		}
	}
	own, hidden := policy.Spec{Per: []policy.Attribute{policy.User}}, policy.Spec{}
	shadow := policy.Spec{Per: own.Per, Mode: policy.Shadow}
	const ac, ca = `"a";q=10;w=60, "c";q=10;w=60`, `"c";q=10;w=60, "a";q=10;w=60`
	for name, c := range map[string]struct {
		parts           []policy.DecisionPart
		tightest        int
		wait            int64
		policies, limit string
	}{
		"the tightest shows": {
			[]policy.DecisionPart{part("a", 7, 0, own), part("b", 5, 0, hidden), part("c", 3, 0, own)}, 2, 0, ca, `"c";r=3;t=30`,
		},
		"another shows, the one with the fewest left": {
			[]policy.DecisionPart{part("a", 7, 0, own), part("b", 1, 0, hidden), part("c", 8, 0, own)}, 1, 0, ac, `"a";r=7;t=30`,
		},
		"it denies too, and has more before the longest wait ends": {
			[]policy.DecisionPart{part("a", 7, 0, own), part("b", 0, 40_000_000, hidden), part("c", 2, 20_000_000, own)}, 1, 40, ca, `"c";r=2;t=20`,
		},
		"it allows, and would have more only after Retry-After": {
			[]policy.DecisionPart{part("a", 7, 0, own), part("b", 0, 20_000_000, hidden), part("c", 8, 0, own)}, 1, 20, ac, `"a";r=7`,
		},
		"shadows are not heeded": {
			[]policy.DecisionPart{part("a", 0, 9_000_000, shadow), part("b", 5, 0, own)}, 1, 0, `"b";q=10;w=60`, `"b";r=5;t=30`,
		},
		"none shows": {[]policy.DecisionPart{part("a", 0, 0, shadow), part("b", 5, 0, hidden)}, 1, 0, "", ""},
	} {
		top := &c.parts[c.tightest]
		decision := policy.Decision{
			Policy: top.Policy, Allowed: c.wait == 0, Remaining: top.Remaining, RetryAfterMicros: top.RetryAfterMicros,
			AtMicros: 1_000_000_000_000_000, ResetAfterMicros: top.ResetAfterMicros, Detail: &policy.Detail{Parts: c.parts},
		}
		var fields fields
		fields.addDecisionFields(&decision, ResetOff, c.wait)
		header := make(http.Header)
		fields.writeTo(header)
		if header.Get("RateLimit-Policy") != c.policies || header.Get("RateLimit") != c.limit {
			t.Errorf("%s: %q and %q, want %q and %q", name, header.Get("RateLimit-Policy"), header.Get("RateLimit"), c.policies, c.limit)
		}
		if wait := header.Get("Retry-After"); wait != "" && wait != strconv.FormatInt(c.wait, 10) {
			t.Errorf("%s: Retry-After %s, want %d", name, wait, c.wait)
		}
	}
}

// TestADebtThatOutlastsTheCalendar: what is full again after the year 9999 is
// said to be so at its end, wherever an instant is told.
func TestADebtThatOutlastsTheCalendar(t *testing.T) {
	t.Parallel()
	const now, ends = 1_767_323_045_000_000, `"resetAt":"9999-12-31T23:59:59.999Z"`
	for _, resetAfter := range []int64{policy.InstantMicrosMax, math.MaxInt64} {
		part := policy.DecisionPart{
			Policy:           &policy.Installed{ID: "p", Spec: &policy.Spec{Disclose: true, Limit: policy.Limit{Capacity: 5, Rate: policy.Rate{N: 1, D: 1}}}},
			RetryAfterMicros: 1, ResetAfterMicros: resetAfter,
		}
		decision := policy.Decision{Policy: part.Policy, AtMicros: now, RetryAfterMicros: 1, ResetAfterMicros: resetAfter}
		var fields fields
		fields.addDecisionFields(&decision, ResetEpoch, 1)
		header := make(http.Header)
		fields.writeTo(header)
		if got := header.Get("X-RateLimit-Reset"); got != "253402300800" {
			t.Errorf("X-RateLimit-Reset is %s, want the last second of 9999 rounded up", got)
		}
		if answer := string(appendDecision(nil, &decision, 1)); !strings.Contains(answer, ends) {
			t.Errorf("a decision says %s", answer)
		}
		if answer := string(appendUsage(nil, &policy.Usage{AtMicros: now, Parts: []policy.DecisionPart{part}})); !strings.Contains(answer, ends) {
			t.Errorf("usage says %s", answer)
		}
	}
}

func TestHeadersHaveRoomForAFewPolicies(t *testing.T) {
	t.Parallel()
	var parts []policy.DecisionPart
	for i := range 64 {
		spec := &policy.Spec{Disclose: true, Limit: policy.Limit{Algorithm: policy.FixedWindow, Capacity: 10, SpanMicros: 1_000_000}}
		parts = append(parts, policy.DecisionPart{Policy: &policy.Installed{ID: "p" + strconv.Itoa(i), Spec: spec}, Allowed: true})
	}
	var fields fields
	fields.addDecisionFields(&policy.Decision{Policy: parts[40].Policy, Allowed: true, Detail: &policy.Detail{Parts: parts}}, ResetOff, 0)
	header := make(http.Header)
	fields.writeTo(header)
	listed := strings.Split(header.Get("RateLimit-Policy"), ", ")
	if len(listed) != quotasMax || listed[0] != `"p40";q=10;w=1` || listed[1] != `"p0";q=10;w=1` {
		t.Errorf("%d policies are listed, want %d with the tightest in front: %q", len(listed), quotasMax, listed)
	}
}
