package storetest

import (
	"math/big"
	"math/rand/v2"

	"github.com/rationhq/ration/policy"
)

// bucketChecks are the guarantees of a token bucket under one version.
func bucketChecks() []check {
	return []check{
		{"a call repeated at the advised microsecond is allowed, one before it is not", adviceIsExact},
		{"never more than capacity and rate times T", neverAboveTheRate},
		{"remaining is neither negative nor above capacity", remainingIsBounded},
		{"polling an empty slow bucket loses nothing", pollingLosesNothing},
		{"a clock that is behind earns nothing and does not move the bucket back", clockBehind},
		{"a cost above capacity is never allowed and changes nothing", costAboveCapacity},
		{"a denial takes nothing", denialTakesNothing},
		{"a bucket is full exactly when it says", fullWhenItSays},
		{"a long absence earns no more than the capacity", longAbsence},
	}
}

// rates are refills that divide a microsecond evenly, and ones that do not.
var rates = []struct {
	capacity      int64
	tokens, every string // seconds
}{
	{10, "20", "1"},
	{10, "1", "3"},
	{10, "7", "2"},
	{10, "0.1", "1"},
	{100, "3000000", "1"}, // three tokens a microsecond
	{3, "1", "31622400"},  // the slowest allowed: one in 366 days
	{7, "1000003", "999.983"},
}

func adviceIsExact(s *scene) {
	for _, rate := range rates {
		s.install(0, rate.capacity, rate.tokens, rate.every)
		// A fresh key for each rate, drained, and asked a little later, so
		// that the wait begins between two tokens.
		key, at := rate.tokens+"/"+rate.every, 2*year
		s.ask(at, key, int32(rate.capacity), 1)
		for cost := int64(1); cost <= rate.capacity; cost += 2 {
			advised := s.ask(at, key, 1, cost).RetryAfterMicros
			if advised <= 0 {
				continue // earned within the microseconds since the last ask
			}
			early := s.ask(at+advised-1, key, 1, cost)
			if early.Admitted != 0 || early.RetryAfterMicros != 1 {
				s.Errorf("%s per %s s, cost %d: one microsecond early: %+v", rate.tokens, rate.every, cost, early)
			}
			at += advised
			if got := s.ask(at, key, 1, cost); got.Admitted != 1 {
				s.Errorf("%s per %s s, cost %d: at the advised instant: %+v", rate.tokens, rate.every, cost, got)
			}
			at++
		}
	}
}

func neverAboveTheRate(s *scene) {
	const capacity, seed, asks = 5, 11, 400
	s.install(0, capacity, "7", "3")
	rate := big.NewRat(7, 3*second)
	random := rand.New(rand.NewPCG(seed, 0))

	// taken is what had been admitted when the call at an instant was over.
	type moment struct{ at, before, after int64 }
	var moments []moment
	at, taken := int64(0), int64(0)
	for range asks {
		at += random.Int64N(400 * millisecond)
		cost := 1 + random.Int64N(capacity)
		got := s.ask(at, "key", 1+random.Int32N(3), cost)
		m := moment{at: at, before: taken}
		taken += int64(got.Admitted) * cost
		m.after = taken
		moments = append(moments, m)
	}
	for i, from := range moments {
		for _, to := range moments[i:] {
			bound := new(big.Rat).SetInt64(to.at - from.at)
			bound.Add(bound.Mul(bound, rate), big.NewRat(capacity, 1))
			if admitted := to.after - from.before; bound.Cmp(big.NewRat(admitted, 1)) < 0 {
				s.Fatalf("seed %d: %d tokens from %d to %d µs, at most %s", seed, admitted, from.at, to.at, bound.FloatString(3))
			}
		}
	}
	if taken <= capacity {
		s.Errorf("seed %d: only %d tokens taken, the bound was not tried", seed, taken)
	}
}

func remainingIsBounded(s *scene) {
	const capacity, seed, asks = 9, 12, 300
	s.install(0, capacity, "5", "2")
	random := rand.New(rand.NewPCG(seed, 0))
	at := int64(0)
	for range asks {
		at += random.Int64N(second) - 200*millisecond // sometimes back
		got := s.ask(at, "key", random.Int32N(4), 1+random.Int64N(capacity+2))
		if got.Remaining < 0 || got.Remaining > capacity {
			s.Fatalf("seed %d: at %d µs: %+v", seed, at, got)
		}
	}
}

func pollingLosesNothing(s *scene) {
	s.install(0, 1, "1", "1000")
	s.spend(0, "polled", 1)
	for at := int64(1); at < 1000*second; at += 12_345_677 {
		s.deny(at, "polled", 1, 0, 1000*second-at)
	}
	s.allow(1000*second, "polled", 1, 0)
}

func clockBehind(s *scene) {
	s.install(0, 10, "1", "1")
	s.spend(100*second, "key", 10)
	s.deny(40*second, "key", 1, 0, 61*second) // waits for the clock, then for the token
	s.deny(100*second, "key", 1, 0, second)   // the ask in the past moved nothing
	s.spend(103*second, "key", 1)             // leaves 2
	s.allow(50*second, "key", 1, 1)
	s.allow(50*second, "key", 1, 0)
	s.deny(51*second, "key", 1, 0, 53*second) // spending in the past moved nothing either
	s.deny(104*second-1, "key", 1, 0, 1)
	s.allow(104*second, "key", 1, 0)
}

func costAboveCapacity(s *scene) {
	s.install(0, 3, "3", "2")
	s.deny(0, "key", 4, 3, policy.Never)
	s.deny(0, "key", policy.CostMax, 3, policy.Never)
	if got := s.ask(0, "key", 0, 4); got.RetryAfterMicros != policy.Never {
		s.Errorf("a peek above capacity: %+v", got)
	}
	s.allow(0, "key", 3, 0)
	s.deny(0, "key", policy.CostMax, 0, policy.Never)
	s.allow(2*second, "key", 3, 0)
}

func denialTakesNothing(s *scene) {
	s.install(0, 10, "0.1", "1")
	s.spend(0, "key", 8)
	for range 100 {
		s.deny(0, "key", 10, 2, 80*second)
	}
	s.deny(5*second, "key", 3, 2, 5*second) // half a token more
	s.allow(5*second, "key", 2, 0)
	s.allow(10*second, "key", 1, 0) // the half was kept
}

func fullWhenItSays(s *scene) {
	s.install(0, 10, "1", "3")
	got := s.ask(0, "key", 4, 1)
	if got.ResetAfterMicros != 12*second {
		s.Fatalf("4 of 10 taken at 1 per 3 s: %+v, want full after 12 s", got)
	}
	for _, c := range []struct{ at, reset, remaining int64 }{
		{second, 11 * second, 6},
		{12*second - 1, 1, 9},
		{12 * second, 0, 10},
		{20 * second, 0, 10},
		{-second, 13 * second, 6},
	} {
		if got := s.peek(c.at, "key"); got.ResetAfterMicros != c.reset || got.Remaining != c.remaining {
			s.Errorf("at %d µs: %+v, want full after %d µs, %d remaining", c.at, got, c.reset, c.remaining)
		}
	}
}

func longAbsence(s *scene) {
	// The largest numbers that can be installed: any product of the elapsed
	// time or of the cost overflows 64 bits.
	const huge = int64(1)<<62 - 1
	s.install(0, huge, "4611686018427387903", "0.000001")
	s.allow(0, "fast", huge, 0)
	s.deny(0, "fast", huge, 0, 1)
	s.allow(1, "fast", huge, 0)
	s.allow(1000*year, "fast", huge, 0)
	s.holds(2000*year, "fast", huge)

	s.install(2000*year, 1, "1", "31622400")
	s.allow(2000*year, "slow", 1, 0)
	s.holds(4000*year, "slow", 1)
}
