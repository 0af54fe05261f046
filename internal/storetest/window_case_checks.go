package storetest

import "fmt"

// windowCaseChecks are faults that other limiters have had in windows.
func windowCaseChecks() []check {
	return []check{
		{"fault: a window lets twice its limit through", faultBursts},
		{"fault: refused calls keep a caller blocked", faultRefusedCount},
		{"fault: days begin at local midnight", faultLocalDays},
		{"fault: unused keys and new windows are reported wrong", faultReports},
		{"fault: a refused call takes from a window", faultRefusedTakesWindow},
		{"fault: a count breaks at 2^31", faultCountWraps},
		{"fault: a window that is cleaned at its end locks out", faultCleanedWindow},
		{"fault: a new limit waits for the end of the window in hand", faultOldWindowLimit},
	}
}

// faultBursts: twice the limit passed around a window's end, without anybody
// saying so (IronTraffic#212).
func faultBursts(s *scene) {
	for id, want := range map[string][]int{
		"fixed":   {100, 100, 0, 0, 0},
		"counter": {100, 0, 50, 49, 0},
		"log":     {100, 0, 0, 0, 100},
	} {
		s.put(0, id, map[string]string{
			"fixed": fixedWindow(100, "1"), "counter": slidingCounter(100, "1"), "log": slidingLog(100, "1"),
		}[id])
		for i, at := range []int64{999, 1000, 1500, 1998, 1999} {
			if got := s.admittedTogether(at*millisecond, id, 100, "key"); got != want[i] {
				s.Errorf("%s at %d ms: %d of 100 allowed, want %d", id, at, got, want[i])
			}
		}
	}
}

// faultOldWindowLimit: a new limit was ignored until the window in hand ended,
// and answers went on showing the old one (gubernator#37, node-ratelimiter#10).
func faultOldWindowLimit(s *scene) {
	for id, c := range map[string]struct {
		limit func(limit int64, seconds string) string
		wait  int64 // from 5 s on, until the first call, or enough of it, counts no more
	}{
		"fixed":   {fixedWindow, 55 * second},
		"counter": {slidingCounter, 61 * second},
		"strict":  {strictCounter, 56 * second},
		"log":     {slidingLog, 55 * second},
	} {
		s.put(0, id, c.limit(100, "60"))
		s.passes(0, id, "key", 1, 99)
		s.put(5*second, id, c.limit(10, "60"))
		for left := int64(8); left >= 0; left-- {
			if got := s.passes(5*second, id, "key", 1, left); got.Version != 2 {
				s.Errorf("%s: decided by version %d", id, got.Version)
			}
		}
		s.waits(5*second, id, "key", 1, 0, c.wait)
	}
}

// faultRefusedCount: refused calls were counted, so a caller that kept trying
// stayed blocked for ever (piclaw#105, rolling-rate-limiter#9, limiters#110).
func faultRefusedCount(s *scene) {
	s.put(0, "log", slidingLog(1, "5"))
	for half := range int64(41) {
		at := half * 500 * millisecond
		if half%10 == 0 {
			s.passes(at, "log", "key", 1, 0)
		} else {
			s.waits(at, "log", "key", 1, 0, (10-half%10)*500*millisecond)
		}
	}
	s.put(0, "counter", slidingCounter(10, "60"))
	if got := s.admittedTogether(0, "counter", 10, "key"); got != 10 {
		s.Errorf("%d of the first 10 allowed", got)
	}
	for at := int64(1); at < 60; at++ {
		if got := s.admittedTogether(at*second, "counter", 10, "key"); got != 0 {
			s.Errorf("%d more allowed at %d s", got, at)
		}
	}
	for tenth := int64(1); tenth <= 10; tenth++ {
		s.left((60+6*tenth)*second, "counter", "key", tenth) // of a count of 10
	}
}

// faultLocalDays: daily windows followed a node's local midnight
// (health-equity-tracker#5203, ai-dial-core#1951). The second and the third
// day are those on which Europe changes its clocks.
func faultLocalDays(s *scene) {
	s.put(0, "daily", fixedWindow(300, "86400"))
	for _, midnight := range []int64{1, 91, 301} {
		key, end := fmt.Sprint(midnight), midnight*day
		s.passes(end-second, "daily", key, 300, 0)
		s.waits(end-500*millisecond, "daily", key, 1, 0, 500*millisecond)
		if got := s.passes(end, "daily", key, 1, 299); got.ResetAfterMicros != day {
			s.Errorf("at the beginning of a day: %+v, want one of 86,400 s", got)
		}
	}
}

// faultReports: unused keys showed a reset of -1, and what remained was wrong
// on a window's first call (flask-limiter#56, node-rate-limiter-flexible#125,
// ratelimit#3, PublicAPI#646).
func faultReports(s *scene) {
	s.put(0, "three", fixedWindow(3, "60"))
	s.shows(0, "three", "never used", 3, 0)
	for i, want := range []int64{2, 1, 0, 0, 0} {
		got := s.claim(0, s.on("three", "key", 1))
		if got.Allowed != (i < 3) || got.Parts[0].Remaining != want {
			s.Errorf("call %d of 3: %+v, want %d remaining", i+1, got, want)
		}
	}
	s.shows(63*second, "three", "key", 3, 0) // its window has been over for 3 s
	s.put(0, "many", fixedWindow(300, "300"))
	s.passes(299*second, "many", "key", 300, 0)
	if got := s.passes(300*second, "many", "key", 1, 299); got.ResetAfterMicros != 300*second {
		s.Errorf("the first call of a window: %+v, want it to end after 300 s", got)
	}
}

// faultRefusedTakesWindow: a refused call of many tokens took what there was
// (upstash/ratelimit-js#156, #161).
func faultRefusedTakesWindow(s *scene) {
	for id, limit := range map[string]string{
		"fixed": fixedWindow(10, "60"), "log": slidingLog(10, "60"), "counter": slidingCounter(10, "60"),
	} {
		s.put(0, id, limit)
		s.passes(0, id, "key", 8, 2)
		if got := s.claim(0, s.on(id, "key", 5)); got.Allowed || got.Parts[0].Remaining != 2 {
			s.Errorf("%s, 5 of the 2 that are left: %+v", id, got)
		}
		s.passes(0, id, "key", 1, 1)
	}
}

// faultCountWraps: a count was a 32-bit number (hyperindex#1021).
func faultCountWraps(s *scene) {
	s.put(0, "p", fixedWindow(3_000_000_000, "86400"))
	s.passes(0, "p", "key", 2_147_483_646, 852_516_354)
	for left := int64(852_516_353); left >= 852_516_351; left-- {
		s.passes(0, "p", "key", 1, left)
	}
}

// faultCleanedWindow: the count expired between the look and the increment and
// came back without an end (laravel#20641, #59693, ratelimit#595). Each
// window's beginning and end are raced with the cleaner.
func faultCleanedWindow(s *scene) {
	s.put(0, "p", fixedWindow(5, "1"))
	allowed := 0
	for window := range int64(200) {
		for _, at := range []int64{0, 50, 900, 950} {
			if s.claim(window*second+at*millisecond, s.on("p", "key", 5)).Allowed {
				allowed++
			}
			if at%100 == 0 {
				s.clean(window*second + at*millisecond)
			}
		}
	}
	if allowed != 200 {
		s.Errorf("%d allowed in 200 windows", allowed)
	}
}
