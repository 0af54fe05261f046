package httpapi

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rationhq/ration/policy"
)

// decodedAnswer is a decision's JSON as a gateway reads it.
type decodedAnswer struct {
	Allowed           *bool
	Remaining         *int64
	RetryAfterSeconds *int64
	PolicyVersion     *int
	RetryAfterMillis  *int64
	Limit             *int64
	ResetAt           *time.Time
	Policy            *string
	Outcome           *string
	Source            *string
	Mode              *string
}

// FuzzAppendDecision compares the encoder with encoding/json's reading of what
// it wrote.
func FuzzAppendDecision(f *testing.F) {
	f.Add("report-create", 7, true, int64(40), int64(35), int64(0), int64(0), int64(1_767_323_045_250_000), false)
	f.Add("a\"\\\n\x00é", -1, false, int64(1)<<61, int64(0), policy.Never, policy.Never, int64(0), true)
	f.Add("\xff", 1, false, int64(1), int64(0), int64(1), int64(1), int64(1)<<62, false)
	f.Fuzz(func(t *testing.T, id string, version int, permitted bool, limit, remaining, waitMicros, waitSeconds, at int64, disabled bool) {
		waitMicros, waitSeconds = max(waitMicros, policy.Never), max(waitSeconds, policy.Never)
		spec, mode := &policy.Spec{Limit: policy.Limit{Capacity: limit}}, policy.Enforce
		if disabled {
			mode = policy.Disabled
		}
		d := policy.Decision{
			Policy: &policy.Installed{ID: id, Version: version, Spec: spec, Mode: mode}, Allowed: permitted,
			Remaining: remaining, RetryAfterMicros: waitMicros, AtMicros: at, ResetAfterMicros: max(0, waitMicros),
		}
		text := string(append(appendDecision([]byte("{"), &d, waitSeconds), '}'))
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		var got decodedAnswer
		if err := decoder.Decode(&got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if !strings.HasPrefix(text, `{"allowed":`) || *got.Allowed != permitted || *got.Remaining != remaining ||
			*got.PolicyVersion != version || *got.Limit != limit || *got.Outcome != "decided" || *got.Source != "store" {
			t.Errorf("%s does not say %+v", text, d)
		}
		if want := strings.ToValidUTF8(id, "\ufffd"); *got.Policy != want && strings.ToValidUTF8(*got.Policy, "") != *got.Policy {
			t.Errorf("policy %q, want %q", *got.Policy, want)
		}
		checkWait(t, got.RetryAfterSeconds, waitSeconds, 1)
		checkWait(t, got.RetryAfterMillis, waitMicros, microsPerMilli)
		if (got.Mode != nil) != disabled {
			t.Errorf("mode is given: %v, want %v", got.Mode != nil, disabled)
		}
		if resetAt := policy.InstantAfter(at, max(0, waitMicros)); at > 0 {
			if late := got.ResetAt.UnixMicro() - resetAt; late < 0 || late >= microsPerMilli {
				t.Errorf("resetAt is %d µs late, want 0 to 999", late)
			}
		}
	})
}

// checkWait says whether a wait is null for never, else never short and less
// than one unit long.
func checkWait(t *testing.T, got *int64, want, unit int64) {
	t.Helper()
	if want == policy.Never {
		if got != nil {
			t.Errorf("a wait of %d where none helps", *got)
		}
		return
	}
	if got == nil || *got != want/unit && (*got-1) != want/unit || *got < want/unit+min(1, want%unit) {
		t.Errorf("wait %v, want %d/%d rounded up", got, want, unit)
	}
}

func TestWaitsRoundUpAndJitterOnlyLengthens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		micros         int64
		jitter, random float64
		want           int64
	}{
		{1, 0, 0, 1},
		{400_000, 0, 0, 1},
		{1_000_000, 0, 0, 1},
		{1_000_001, 0, 0, 2},
		{5_100_000, 0, 0, 6},
		{30_000_000, 0.1, 0, 30},
		{30_000_000, 0.1, 0.5, 32},
		{30_000_000, 0.1, 0.999999, 33},
		{400_000, 0.1, 0.999999, 1},
		{unavailableWaitMicros, 0.1, 0, 1},
		{unavailableWaitMicros, 0.1, 0.999999, 2},
		{policy.Never, 0.1, 0.5, policy.Never},
		{1<<63 - 1, 1, 0.999999, 9_223_372_036_855},
	} {
		site := Site{Jitter: c.jitter, Random: func() float64 { return c.random }}
		if got := site.waitSeconds(c.micros); got != c.want {
			t.Errorf("%d µs, jitter %v, random %v: %d s, want %d", c.micros, c.jitter, c.random, got, c.want)
		}
	}
}
