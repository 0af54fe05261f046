package storetest

import (
	"fmt"
	"slices"

	"github.com/rationhq/ration/policy"
)

// claimCaseChecks are faults that other limiters have had with several
// policies at once, slots, operation ids and refunds.
func claimCaseChecks() []check {
	return []check{
		{"fault: a policy that denies lets the others be charged", faultOthersCharged},
		{"fault: a crashed holder's slot never comes back", faultSlotLeaks},
		{"fault: a repeated operation runs twice", faultRunsTwice},
		{"fault: a reused operation id passes for a repeat", faultReusedID},
		{"fault: a refund is lost, or made without bound", faultRefund},
		{"fault: the first calls of a key all pass", faultFirstCalls},
	}
}

// faultOthersCharged: what one policy refused was taken from the others
// (symfony#65796, graphql-rate-limit#129, milvus#25597).
func faultOthersCharged(s *scene) {
	s.put(0, "user", fixedWindow(1, "60"))
	s.put(0, "global", fixedWindow(10, "60"))
	allowed := 0
	for range 20 {
		if s.claim(0, s.on("global", "all", 1), s.on("user", "u1", 1)).Allowed {
			allowed++
		}
	}
	got := s.claim(0, s.on("global", "all", 1), s.on("user", "u2", 1))
	if allowed != 1 || !got.Allowed || got.Parts[0].Remaining != 8 {
		s.Errorf("%d of the first user's 20 allowed; the second one: %+v, want 8 left to all", allowed, got)
	}

	s.put(0, "long", fixedWindow(30, "1800"))
	s.put(0, "short", fixedWindow(10, "60"))
	for _, c := range []struct{ from, asks, used int64 }{{0, 31, 10}, {60, 11, 20}, {120, 11, 30}} {
		allowed := 0
		for i := range c.asks {
			if s.claim((c.from+i%4)*second, s.on("long", "key", 1), s.on("short", "key", 1)).Allowed {
				allowed++
			}
		}
		s.left(c.from*second, "long", "key", 30-c.used)
		if allowed != 10 {
			s.Errorf("from %d s on %d of %d allowed, want 10", c.from, allowed, c.asks)
		}
	}
	got = s.claim(180*second, s.on("long", "key", 1), s.on("short", "key", 1))
	if got.Allowed || got.Parts[0].RetryAfterMicros != 1620*second || !got.Parts[1].Allowed {
		s.Errorf("at 180 s: %+v, want to wait 1620 s for the long one alone", got)
	}

	s.put(0, "a", bucketOf(1, "1", "1"))
	s.put(0, "b", bucketOf(1, "0.01", "1"))
	s.put(0, "c", bucketOf(5, "1", "1"))
	s.claim(0, s.on("a", "key", 1), s.on("b", "key", 1))
	got = s.claim(0, s.on("a", "key", 1), s.on("b", "key", 1), s.on("c", "key", 1))
	if got.Allowed || got.Parts[0].RetryAfterMicros != second || got.Parts[1].RetryAfterMicros != 100*second ||
		!got.Parts[2].Allowed || got.Parts[2].Remaining != 5 {
		s.Errorf("two of three are empty: %+v, want waits of 1 s and 100 s, 5 left of the third", got)
	}
}

// faultSlotLeaks: a crashed holder's slot never came back, a lost reply took a
// second one, and late renewals gave out too many
// (aspnetcore-redis-rate-limiting#2, distributed#3690, prefect#18522).
func faultSlotLeaks(s *scene) {
	s.put(0, "three", concurrency(3, "10"))
	for left := int64(2); left >= 0; left-- {
		s.passes(0, "three", "key", 1, left)
	}
	s.waits(9900*millisecond, "three", "key", 1, 0, 100*millisecond)
	s.passes(10_100*millisecond, "three", "key", 1, 2)

	s.put(0, "one", concurrency(1, "2"))
	claim := operation("X", 0, s.on("one", "key", 1))
	first := s.verdict(0, policy.ClaimDecided, claim)
	s.replays(0, claim, first)
	s.renews(1500*millisecond, first.Parts[0].Slot.ID, 3500*millisecond)
	s.passes(3600*millisecond, "one", "key", 1, 0)
	s.renews(3700*millisecond, first.Parts[0].Slot.ID, 0)
	s.shows(3700*millisecond, "one", "key", 0, 1900*millisecond)
}

// faultRunsTwice: two requests with the same key both ran (Friday#403,
// zoneless#134, idempot-js#186).
func faultRunsTwice(s *scene) {
	s.put(0, "p", bucketOf(10, "1", "86400"))
	claim := operation("X", 0, s.on("p", "key", 1))
	first := s.verdict(0, policy.ClaimDecided, claim)
	if first.Parts[0].Remaining != 9 {
		s.Errorf("the first: %+v, want 9 remaining", first)
	}
	for range 19 {
		s.replays(0, claim, first)
	}
	s.left(0, "p", "key", 9)
}

// faultReusedID: a key that was used again with different content passed for
// a repeat, and an equal request did not (Overpass#16, talos-stellar#407).
func faultReusedID(s *scene) {
	s.put(0, "p", bucketOf(10, "1", "86400"))
	claim := operation("X", 1, s.on("p", "k", 1))
	first := s.verdict(0, policy.ClaimDecided, claim)

	dearer := operation("X", 2, s.on("p", "k", 2))
	s.verdict(0, policy.ClaimReused, dearer)
	otherKey := operation("X", 1, s.on("p", "k2", 1))
	otherKey.Content = keyOf("content", "k2")
	s.verdict(0, policy.ClaimReused, otherKey)
	absent := claim
	absent.Stated = 0 // by default it costs 1
	s.replays(0, absent, first)
	s.left(0, "p", "k", 9)
	s.left(0, "p", "k2", 10)

	tenantB := claim
	tenantB.Operation = keyOf("operation of B", "X")
	tenantB.Checks = []policy.Check{s.on("p", "B", 1)}
	if got := s.verdict(0, policy.ClaimDecided, tenantB); got.Parts[0].Remaining != 9 {
		s.Errorf("another tenant's X: %+v, want one of his own", got)
	}
}

// faultRefund: giving tokens back was lost on an empty bucket, or could be
// repeated without bound (bucket4j#151, token-bucket#7, gubernator#156).
func faultRefund(s *scene) {
	s.put(0, "p", bucketOf(10, "1", "86400"))
	s.operates(0, "X", s.on("p", "key", 3))
	s.left(0, "p", "key", 7)
	s.settle(0, "X", 0, policy.SettleDone)
	s.left(0, "p", "key", 10)
	for range 20 {
		s.settle(0, "X", 0, policy.SettleReplayed)
	}
	s.left(0, "p", "key", 10)

	s.verdict(0, policy.ClaimDecided, operation("denied", 0, s.on("p", "key", 11)))
	s.passes(0, "p", "key", 1, 9)
	for _, id := range []string{"denied", "unknown"} {
		s.settle(0, id, 0, policy.SettleUnknown)
	}
	s.left(0, "p", "key", 9)

	s.passes(0, "p", "drained", 9, 1)
	s.operates(0, "last", s.on("p", "drained", 1))
	s.settle(0, "last", 0, policy.SettleDone)
	s.passes(0, "p", "drained", 1, 0)
	s.waits(0, "p", "drained", 1, 0, day)
}

// faultFirstCalls: with no row yet, or one call left, all read the same count
// and all passed (kong#2629, rate-limit-postgresql#18, django-ratelimit#255).
func faultFirstCalls(s *scene) {
	const keys = 20
	kinds := append(slices.Clone(limits), limitKind{name: "bucket", limit: func(limit int64, _ string) string {
		return bucketOf(limit, "1", "86400")
	}})
	for _, l := range kinds {
		var fresh, primed []string
		for i := range keys {
			fresh = append(fresh, fmt.Sprint("fresh", i))
			primed = append(primed, fmt.Sprint("primed", i))
		}
		ten, three := l.name+"-10", l.name+"-3"
		s.put(0, ten, l.limit(10, "60"))
		s.put(0, three, l.limit(3, "60"))
		for _, key := range primed {
			s.passes(0, ten, key, 9, 1)
		}
		for _, c := range []struct {
			id          string
			keys        []string
			times, want int
		}{{ten, fresh, 25, 10}, {ten, primed, 10, 1}, {three, fresh, 50, 3}} {
			if got := s.admittedTogether(0, c.id, c.times, c.keys...); got != c.want*keys {
				s.Errorf("%s: %d of %d×%d allowed, want %d of each", c.id, got, keys, c.times, c.want)
			}
		}
	}
	s.put(0, "many", fixedWindow(1_000_000, "60"))
	if got := s.admittedTogether(0, "many", 1000, "key"); got != 1000 {
		s.Errorf("%d of 1,000 allowed", got)
	}
	s.left(0, "many", "key", 999_000)
}
