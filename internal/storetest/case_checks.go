package storetest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rationhq/ration/policy"
)

// caseChecks are worked examples, and faults that other limiters have had.
func caseChecks() []check {
	return []check{
		{"example: capacity 40 allows 40 at once and not the 41st", exampleBurst},
		{"example: one token after 3 s at 2 per second is seven", exampleRefill},
		{"example: 0.2 tokens at 2 per second wait 400 ms", exampleWait},
		{"example: of 80 calls within 0.1 s, 37 pass a bucket of 36", exampleStream},
		{"fault: polling starves a slow bucket", faultPolling},
		{"fault: large numbers wrap", faultLargeNumbers},
		{"fault: a clock step drains the bucket", faultClockStep},
		{"fault: a cost above capacity gets a finite wait", faultImpossibleCost},
		{"fault: a refused call takes the last tokens", faultRefusedTakes},
		{"fault: the wait is rounded, or is the time to full", faultRoundedWait},
		{"fault: a new limit waits for the old window", faultOldLimit},
		{"fault: a lowered rate underflows", faultUnderflow},
	}
}

func exampleBurst(s *scene) {
	s.install(0, 40, "20", "1")
	for left := int64(39); left >= 0; left-- {
		s.allow(0, "key", 1, left)
	}
	s.deny(0, "key", 1, 0, 50*millisecond)
	if got := s.ask(0, "together", 41, 1); got.Admitted != 40 || got.RetryAfterMicros != 50*millisecond {
		s.Errorf("41 at once: %+v", got)
	}
}

func exampleRefill(s *scene) {
	s.install(0, 10, "2", "1")
	s.spend(0, "key", 9)
	s.holds(3*second, "key", 7)
	for left := int64(6); left >= 2; left-- {
		s.allow(3*second, "key", 1, left)
	}
}

func exampleWait(s *scene) {
	s.install(0, 10, "2", "1")
	s.spend(0, "key", 10)
	s.deny(100*millisecond, "key", 1, 0, 400*millisecond)
}

func exampleStream(s *scene) {
	s.install(0, 100, "10", "1")
	s.spend(0, "key", 64)
	admitted := int32(0)
	for call := range int64(80) {
		admitted += s.ask(call*100*millisecond/79, "key", 1, 1).Admitted
	}
	if admitted != 37 {
		s.Errorf("%d of 80 calls admitted, want 37", admitted)
	}
}

// faultPolling: every check rounded what was earned down and moved the
// bucket's instant (firecracker#3370, apache/polaris#3433).
func faultPolling(s *scene) {
	s.install(0, 10, "0.1", "1")
	s.spend(0, "slow", 10)
	for at := int64(1); at <= 9; at++ {
		s.deny(at*second, "slow", 1, 0, (10-at)*second)
	}
	s.allow(10*second, "slow", 1, 0)

	s.install(100*second, 5, "2", "1")
	at := int64(200) * second
	s.spend(at, "quick", 5)
	for tenth := int64(1); tenth <= 20; tenth++ {
		now := at + tenth*100*millisecond
		if tenth%5 == 0 {
			s.allow(now, "quick", 1, 0)
		} else {
			s.deny(now, "quick", 1, 0, (5-tenth%5)*100*millisecond)
		}
	}
}

// faultLargeNumbers: a very large rate wrapped negative and the limiter
// stopped limiting (rclone#9820). A limit is exact or refused.
func faultLargeNumbers(s *scene) {
	s.install(0, 9_007_199_254_740_993, "1e15", "1")
	s.allow(0, "key", 1, 9_007_199_254_740_992)
	s.allow(0, "key", 9_007_199_254_740_992, 0)
	s.deny(0, "key", 9_007_199_254_740_993, 0, 9_007_200) // 10^9 a microsecond

	for _, capacity := range []string{"9223372036854775807", "1e300"} {
		_, err := changeTo(s.durability, policy.Enforce, tokenBucket(capacity, "1", "1"))
		var refused *policy.Error
		if !errors.As(err, &refused) || refused.Code != policy.CodeInvalid ||
			!strings.Contains(fmt.Sprint(refused.Faults), "/limit/capacity") {
			s.Errorf("capacity %s: %v, want refused, naming the capacity", capacity, err)
		}
	}
}

// faultClockStep: a negative elapsed time drained the bucket (Eventra#6488).
func faultClockStep(s *scene) {
	s.install(0, 10, "1", "1")
	s.spend(60*second, "key", 5)
	s.allow(0, "key", 1, 4)
	s.allow(second, "key", 1, 3)
	s.deny(2*second, "key", 4, 3, 59*second)
	s.allow(61*second, "key", 4, 0)
}

// faultImpossibleCost: 4 out of 3 was told to wait 0.67 s (bucket4j#220).
func faultImpossibleCost(s *scene) {
	s.install(0, 3, "1.5", "1")
	s.deny(0, "key", 4, 3, policy.Never)
	s.waits(0, "scene", "key", 4, 3, policy.Never)
	s.allow(0, "key", 3, 0)
	s.passes(0, "scene", "other", 3, 0)
}

// faultRefusedTakes: a refused call of many tokens took what there was, or
// locked the key for months (upstash/ratelimit-js#156, #161).
func faultRefusedTakes(s *scene) {
	s.install(0, 10, "0.1", "1")
	s.spend(0, "key", 8)
	s.deny(0, "key", 5, 2, 30*second)
	s.allow(0, "key", 2, 0)

	s.spend(0, "other", 8)
	for range 100 {
		s.deny(0, "other", 10, 2, 80*second)
	}
	s.holds(0, "other", 2)
}

// faultRoundedWait: a call was let in at half the advised wait, and the time
// to full was taken for the time to retry (redis-gcra#3, throttled#55).
func faultRoundedWait(s *scene) {
	s.install(0, 6, "0.1", "1")
	s.spend(0, "key", 6)
	s.passes(0, "scene", "other", 6, 0)
	for _, at := range []int64{4900, 5100, 9990} {
		s.deny(at*millisecond, "key", 1, 0, (10_000-at)*millisecond)
		s.waits(at*millisecond, "scene", "other", 1, 0, (10_000-at)*millisecond)
	}
	s.allow(10*second, "key", 1, 0)
	s.passes(10*second, "scene", "other", 1, 0)

	s.install(20*second, 10, "0.1", "1")
	at := day // every key is full
	s.spend(at, "drained", 10)
	for cost, wait := range map[int64]int64{1: 10, 3: 30, 10: 100} {
		got := s.ask(at, "drained", 1, cost)
		if got.Admitted != 0 || got.RetryAfterMicros != wait*second || got.ResetAfterMicros != 100*second {
			s.Errorf("cost %d of a drained bucket: %+v, want to wait %d s, full after 100 s", cost, got, wait)
		}
		s.waits(at, "scene", "drained", cost, 0, wait*second)
	}
	s.shows(at, "scene", "drained", 0, 100*second)
}

// faultOldLimit: a new limit was ignored until the old window ended, and
// answers went on showing the old one (gubernator#37, node-ratelimiter#10).
func faultOldLimit(s *scene) {
	s.install(0, 100, "1", "86400")
	s.allow(0, "key", 1, 99)
	s.install(5*second, 10, "1", "86400")
	for left := int64(9); left >= 0; left-- {
		s.allow(5*second, "key", 1, left)
	}
	s.deny(5*second, "key", 1, 0, day)
}

// faultUnderflow: a lowered rate was subtracted from the bucket and wrapped
// (redpanda#21357, gubernator#40).
func faultUnderflow(s *scene) {
	s.install(0, 100, "100", "1")
	s.spend(0, "key", 10)
	s.install(0, 1, "1", "1")
	s.allow(0, "key", 1, 0)
	s.deny(0, "key", 1, 0, second)

	s.install(day, 10, "1", "1")
	at := 2 * day // every key is full
	s.spend(at, "raised", 6)
	s.install(at, 100, "1", "1")
	s.allow(at, "raised", 1, 3)
	s.holds(at+10*second, "raised", 13)
	s.holds(at, "full", 10)
}
