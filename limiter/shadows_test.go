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

// ReportShadow notes what it is told, or fails as it was told to.
func (s *store) ReportShadow(_ context.Context, seen []policy.ShadowSeen) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reportFault != nil {
		return s.reportFault
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
