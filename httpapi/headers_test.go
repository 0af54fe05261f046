package httpapi

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
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
		var fields fields
		fields.addDecisionFields(&decision, ResetDelta, 1)
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
			d := policy.Decision{
				Policy:    &policy.Installed{Spec: &policy.Spec{Limit: policy.Limit{Capacity: capacity, Rate: rate}}},
				Remaining: remaining, ResetAfterMicros: ceilDiv(capacity*rate.D-balance, rate.N),
			}
			exact := ceilDiv((remaining+1)*rate.D-balance, rate.N)
			if got := nextTokenMicros(&d); got < exact || got > exact+1 {
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

func TestFiguresShowOnlyToTheirOwner(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec policy.Spec
		want bool
	}{
		{policy.Spec{Per: []policy.Attribute{policy.Account, policy.Operation}}, true},
		{policy.Spec{Per: []policy.Attribute{policy.User}}, true},
		{policy.Spec{Per: []policy.Attribute{policy.APIKey}}, true},
		{policy.Spec{Per: []policy.Attribute{policy.OAuthToken}}, true},
		{policy.Spec{Per: []policy.Attribute{policy.IP, policy.TargetAccount}}, true},
		{policy.Spec{Per: []policy.Attribute{policy.TargetAccount}}, false},
		{policy.Spec{Per: []policy.Attribute{policy.Plan, policy.Region, policy.Operation}}, false},
		{policy.Spec{}, false},
		{policy.Spec{Disclose: true}, true},
		{policy.Spec{Disclose: true, Mode: policy.Disabled}, false},
	} {
		if got := showsFigures(&c.spec); got != c.want {
			t.Errorf("per %v, disclose %v, mode %d: shows %v, want %v", c.spec.Per, c.spec.Disclose, c.spec.Mode, got, c.want)
		}
	}
}
