package simulate

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rationhq/ration/internal/memstore"
	"github.com/rationhq/ration/policy"
)

// limits are of each kind, small enough that random traffic meets their edges:
// rates that no microsecond divides, windows that no segment divides. Those
// that are large are as large as there may be.
var limits = []string{
	`{"algorithm": "token_bucket", "capacity": 7, "refillTokens": 3, "refillSeconds": 0.7}`,
	`{"algorithm": "token_bucket", "capacity": 5, "refillTokens": 2000001, "refillSeconds": 1}`,
	`{"algorithm": "token_bucket", "capacity": 4611686018427387903, "refillTokens": 4000000000000000000, "refillSeconds": 1}`,
	`{"algorithm": "fixed_window", "limit": 6, "windowSeconds": 1.000007}`,
	`{"algorithm": "fixed_window", "limit": 4611686018427387903, "windowSeconds": 1.000007}`,
	`{"algorithm": "sliding_window_counter", "limit": 6, "windowSeconds": 1.000007}`,
	`{"algorithm": "sliding_window_counter", "limit": 2305826868000, "windowSeconds": 1.000007}`,
	`{"algorithm": "sliding_window_counter", "limit": 6, "windowSeconds": 1.000007, "strict": true}`,
	`{"algorithm": "sliding_window_log", "limit": 6, "windowSeconds": 1.000007}`,
}

// Every request of random traffic is answered as the store in memory does,
// whose arithmetic is another. The clock steps back too.
func TestStatesAnswerAsTheStore(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, limit := range limits {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			store, installed := storeOf(t, limit)
			rule, states := &installed.Spec.Limit, map[policy.Key]state{}
			var allowed, denied int
			now, advised := int64(1_700_000_000_000_000), int64(0)
			for range 3000 {
				now += step(random, rule.SpanMicros, advised)
				cost := (1 + random.Int64N(min(7, rule.Capacity))) * max(1, rule.Capacity/7)
				key := policy.Key{byte(random.IntN(3))}
				want := charge(t, store, policy.Check{Policy: installed, Key: key, Cost: cost}, now)
				if states[key] == nil {
					states[key] = newState(rule)
				}
				if got := states[key].ask(rule, cost, now); got != want {
					t.Fatalf("cost %d at %d: wait %d, want %d", cost, now, got, want)
				}
				if advised = want; want == 0 {
					allowed++
				} else {
					denied++
				}
			}
			if allowed < 100 || denied < 100 {
				t.Errorf("%d allowed, %d denied: the edges were not met", allowed, denied)
			}
		})
	}
}

// step is how far the clock goes on: often not at all or by the wait that was
// advised last, at times back or a window or two ahead.
func step(random *rand.Rand, span, advised int64) int64 {
	span = max(span, 1_000_000)
	switch random.IntN(20) {
	case 0:
		return -random.Int64N(span)
	case 1:
		return span + random.Int64N(2*span)
	case 2, 3, 4:
		return 0
	case 5, 6, 7:
		return advised
	case 8, 9:
		return random.Int64N(5)
	default:
		return random.Int64N(span / 4)
	}
}

func storeOf(t *testing.T, limit string) (*memstore.Store, *policy.Installed) {
	t.Helper()
	change, err := policy.ParseChange(fmt.Appendf(nil, `{"match": {}, "per": ["ip"], "limit": %s}`, limit))
	if err != nil {
		t.Fatal(err)
	}
	store := memstore.New(100)
	installed, err := store.Install(t.Context(), "candidate", change, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return store, installed
}

// charge asks the store and gives the wait.
func charge(t *testing.T, store *memstore.Store, check policy.Check, nowMicros int64) int64 {
	t.Helper()
	var verdicts policy.Verdicts
	claims := policy.Claims{Generation: 1, NowMicros: nowMicros, Claims: []policy.Claim{{Checks: []policy.Check{check}}}}
	if err := store.DecideClaims(t.Context(), &claims, &verdicts); err != nil {
		t.Fatal(err)
	}
	return verdicts.Verdicts[0].Parts[0].RetryAfterMicros
}
