package limiter_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/policy"
)

// lines is a log that a test reads.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// logTo is a change of a limiter's configuration.
func (l *lines) logTo(c *limiter.Config) { c.Logger = slog.New(slog.NewTextHandler(l, nil)) }

// counts expects so many lines of a level since the last time; only those
// about answers and loss, not those about policies.
func (l *lines) counts(t *testing.T, warn, info, failure int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	got := map[string]int{}
	for line := range strings.Lines(l.text.String()) {
		for _, level := range []string{"WARN", "INFO", "ERROR"} {
			if strings.Contains(line, "level="+level) && !strings.Contains(line, "policies in force") {
				got[level]++
			}
		}
	}
	if got["WARN"] != warn || got["INFO"] != info || got["ERROR"] != failure {
		t.Errorf("%v, want %d warnings, %d informations, %d errors:\n%s", got, warn, info, failure, l.text.String())
	}
	l.text.Reset()
}

func TestALaneConnectsAgainWhileNobodyAsks(t *testing.T) {
	t.Parallel()
	for _, f := range []policy.StoreFault{policy.StoreUnreachable, policy.StoreUnsure} {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				s.install(t, "op", 10, "")
				r := start(t, s)
				r.ask(request("op", "A", 1)).is(true, 9)
				synctest.Wait()
				if tried := s.connectsIn(errors.New("starting up")); tried != 0 {
					t.Errorf("connected %d times after an answer", tried)
				}
				s.breaks(failsOnce(fault(f)))
				r.ask(request("op", "A", 1)).fails(policy.ReasonStoreUnavailable)
				synctest.Wait()
				if tried := s.connectsIn(errors.New("starting up")); tried != 1 {
					t.Errorf("connected %d times at once, want once", tried)
				}
				<-time.After(time.Second + time.Millisecond)
				if tried := s.connectsIn(nil); tried != 5 {
					t.Errorf("connected %d times within a second, want five", tried)
				}
				<-time.After(time.Minute)
				if tried := s.connectsIn(nil); tried != 6 {
					t.Errorf("connected %d times, want an end when it succeeded", tried)
				}
			})
		})
	}
}

func TestAnOutageIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		var log lines
		r := start(t, s, log.logTo)
		ask := func(n int) {
			for range n {
				r.ask(request("op", "A", 1))
				synctest.Wait()
			}
		}
		ask(3)
		log.counts(t, 0, 0, 0)
		s.breaks(func(sentCall) error { return fault(policy.StoreUnsure) })
		ask(3)
		log.counts(t, 1, 0, 0)
		s.breaks(func(sentCall) error { return nil })
		ask(3)
		log.counts(t, 0, 1, 0)
	})
}

func TestALossIsLoggedByWhoRecordsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 10, "")
		var log lines
		r := start(t, s, log.logTo)
		s.breaks(failsOnce(fault(policy.StoreStateLost)))
		r.ask(request("op", "A", 1)).is(true, 9)
		log.counts(t, 0, 0, 1)
		s.recoveredByOther(true)
		s.breaks(failsOnce(fault(policy.StoreStateLost)))
		r.ask(request("op", "A", 1)).is(true, 8)
		log.counts(t, 0, 0, 0)
	})
}
