package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rationhq/ration/policy"
)

// reportMax is how many versions the store takes in one report.
const reportMax = 100

// ReportShadow notes what it is told, or fails as it was told to.
func (s *store) ReportShadow(ctx context.Context, seen []policy.ShadowSeen) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.reportFault != nil:
		return s.reportFault
	case len(seen) > reportMax:
		return fmt.Errorf("a report on %d versions at once", len(seen))
	}
	s.reported = append(s.reported, seen...)
	return nil
}

// reportsIn lets further reports end so.
func (s *store) reportsIn(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reportFault = err
}

// reports gives what was reported since the last time, each version as a line
// and behind it its keys.
func (s *store) reports() (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seen := range s.reported {
		var keys []string
		for _, key := range seen.Keys {
			if key.FirstAtMicros < seen.FirstAtMicros || key.LastAtMicros > seen.LastAtMicros || key.FirstAtMicros > key.LastAtMicros {
				keys = append(keys, "at impossible instants")
			}
			keys = append(keys, fmt.Sprintf("%s %d", key.Who, key.Denied))
		}
		slices.Sort(keys)
		line := fmt.Sprintf("policy %d v%d: %d decided, %d denied", seen.Policy, seen.Version, seen.Decided, seen.Denied)
		lines = append(lines, strings.Join(append([]string{line}, keys...), ", "))
	}
	slices.Sort(lines)
	s.reported = nil
	return lines
}

// tells expects the reports since the last time.
func (s *store) tells(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, s.reports()); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}

func TestWhatAShadowWouldDenyIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		shadow := s.install(t, "op", 2, `, "mode": "shadow", "costs": {"max": 10}`)
		s.installBody(t, "each", `{"match": {"operations": ["op"]}, "per": ["ip"], "mode": "shadow",
			"limit": {"algorithm": "fixed_window", "limit": 1, "windowSeconds": 3600}}`)
		s.install(t, "enforced", 1, "")
		s.installOn(t, "op", "beside", `["account"]`, bucket(100), "") // is no shadow, and not reported on
		r := start(t, s)
		ask := func(account, ip, operationID string, cost int64, peek bool) {
			t.Helper()
			asked := request("op", account, cost)
			asked.Values[policy.IP], asked.OperationID, asked.Peek = ip, operationID, peek
			if got := <-r.ask(asked).result; got.Err != nil || !got.Decision.Allowed {
				t.Errorf("%s: %+v, %v", account, got.Decision, got.Err)
			}
		}
		ask("A", "", "", 2, false)
		ask("A", "", "", 2, false)
		ask("A", "", "one", 2, false)
		ask("A", "", "one", 2, false) // told again what was told before
		ask("A", "", "", 2, true)     // decides nothing
		ask("B", "2001:db8::1", "", 3, false)
		ask("B", "2001:db8::2", "", 1, false)
		r.ask(request("enforced", "A", 1)).is(true, 0)
		r.ask(request("enforced", "A", 1)).is(false, 0)
		if lines := s.reports(); lines != nil {
			t.Errorf("reported at once: %v", lines)
		}
		<-time.After(6 * time.Second)
		of := func(number int32) string { return fmt.Sprintf("policy %d v1", number) }
		each := shadow.Number + 1
		s.tells(t, of(shadow.Number)+`: 5 decided, 3 denied, {"account":"A"} 2, {"account":"B"} 1`,
			of(each)+`: 2 decided, 1 denied, {"ip":"2001:db8::/64"} 1`)
		<-time.After(10 * time.Second)
		s.tells(t)

		// What cannot be told is told with what comes after it.
		s.reportsIn(errors.New("away"))
		ask("B", "", "", 3, false)
		<-time.After(11 * time.Second)
		ask("B", "", "", 3, false)
		ask("C", "", "", 1, false)
		<-time.After(5 * time.Second)
		s.reportsIn(nil)
		<-time.After(5 * time.Second)
		s.tells(t, of(shadow.Number)+`: 3 decided, 2 denied, {"account":"B"} 2`)

		ask("D", "", "", 3, false)
		if err := r.ReportShadows(t.Context()); err != nil {
			t.Error(err)
		}
		s.tells(t, of(shadow.Number)+`: 1 decided, 1 denied, {"account":"D"} 1`)
		ask("D", "", "", 3, false)
		r.stop()
		s.tells(t, of(shadow.Number)+`: 1 decided, 1 denied, {"account":"D"} 1`)
	})
}

// A key's instants are those of its first and its last denial.
func TestAReportSpansItsDenials(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 1, `, "mode": "shadow", "costs": {"default": 2}`)
		r := start(t, s)
		first := s.nowMicros()
		for range 3 {
			r.ask(request("op", "A", 0)).is(true, 1)
			<-time.After(time.Second)
		}
		r.stop()
		if len(s.reported) != 1 || len(s.reported[0].Keys) != 1 {
			t.Fatalf("reported %+v", s.reported)
		}
		seen, key := s.reported[0], s.reported[0].Keys[0]
		if last := first + 2_000_000; seen.FirstAtMicros != first || key.FirstAtMicros != first || seen.LastAtMicros != last || key.LastAtMicros != last {
			t.Errorf("the version from %d to %d, its key from %d to %d; want %d to %d",
				seen.FirstAtMicros, seen.LastAtMicros, key.FirstAtMicros, key.LastAtMicros, first, last)
		}
	})
}

// What an override's limit would deny is reported of its policy.
func TestOverriddenKeysAreReportedOfTheirPolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		const members = `, "mode": "shadow", "costs": {"max": 1000}`
		shadow := s.install(t, "op", 10, members)
		s.override(shadow, "L", policy.Override{Action: policy.OverrideLimit, Limited: s.install(t, "limited", 1, members)})
		r := start(t, s)
		r.ask(request("op", "L", 2)).is(true, 1)
		r.ask(request("op", "N", 2)).is(true, 8)
		r.stop()
		s.tells(t, fmt.Sprintf(`policy %d v1: 2 decided, 1 denied, {"account":"L"} 1`, shadow.Number))
	})
}

// However many versions there are, none is lost where a report fails.
func TestManyShadowsAreReportedInPieces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		var want []string
		for i := range 2*reportMax + 50 {
			id := fmt.Sprint("op", i)
			number := s.install(t, id, 1, `, "mode": "shadow"`).Number
			want = append(want, fmt.Sprintf("policy %d v1: 1 decided, 0 denied", number))
		}
		slices.Sort(want)
		r := start(t, s)
		for i := range want {
			r.ask(request(fmt.Sprint("op", i), "A", 1)).is(true, 0)
		}
		s.reportsIn(errors.New("away"))
		if err := r.ReportShadows(t.Context()); err == nil {
			t.Error("a report that failed is no error")
		}
		s.reportsIn(nil)
		if err := r.ReportShadows(t.Context()); err != nil {
			t.Error(err)
		}
		s.tells(t, want...)
	})
}

// However many would be denied, so many keys are named, and all are counted.
func TestReportsOnShadowsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 1, `, "mode": "shadow", "costs": {"default": 2}`)
		r := start(t, s)
		var requests []*policy.Request
		for i := range policy.ShadowKeysMax + 50 {
			requests = append(requests, request("op", fmt.Sprint("account", i), 0))
		}
		for batch := range slices.Chunk(requests, 50) {
			r.DecideBatch(t.Context(), batch, make([]policy.Result, len(batch)))
		}
		r.stop()
		if len(s.reported) != 1 || len(s.reported[0].Keys) != policy.ShadowKeysMax || s.reported[0].Denied != int64(len(requests)) {
			t.Errorf("%d versions, of the first %d keys and %d denials", len(s.reported), len(s.reported[0].Keys), s.reported[0].Denied)
		}
	})
}

// The keys of all policies together are bounded between two reports.
func TestReportsOnAllShadowsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		const shadows, keysMax = 21, 20_000
		for i := range shadows {
			s.installOn(t, "op", fmt.Sprint("shadow", i), `["account"]`, bucket(1), `, "mode": "shadow"`)
		}
		r := start(t, s)
		for range 2 {
			for i := range policy.ShadowKeysMax {
				r.ask(request("op", fmt.Sprint("account", i), 2)).is(true, 1)
			}
			if err := r.ReportShadows(t.Context()); err != nil {
				t.Fatal(err)
			}
			keys, denied := 0, int64(0)
			for i := range s.reported {
				keys += len(s.reported[i].Keys)
				denied += s.reported[i].Denied
			}
			if keys != keysMax || denied != shadows*policy.ShadowKeysMax {
				t.Errorf("%d keys and %d denials", keys, denied)
			}
			s.reports()
		}
	})
}
