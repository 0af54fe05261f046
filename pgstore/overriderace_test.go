package pgstore_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// Eight callers spend one key while its override comes, changes and goes: all
// that is carried to and fro is spent once, whichever path a call takes and
// whatever it was matched by.
func TestAnOverrideUnderSpendingCallers(t *testing.T) {
	t.Parallel()
	for _, durability := range []policy.Durability{policy.Fast, policy.Durable} {
		t.Run(durability.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			const callers, capacity = 8, 400
			s := shape{capacity: capacity, durability: durability}
			b.install("p", 0, s, 0)
			c := b.crew(callers)
			var spent, stale atomic.Int64
			changed := make(chan struct{})
			go func() {
				defer close(changed)
				for turn := range 12 {
					if turn%3 == 2 {
						if err := b.removeOverride("p", "A", 0); err != nil {
							t.Error(err)
						}
						continue
					}
					b.override("p", "A", b.limitOf(s, int64(capacity*(turn+1))), 0)
				}
			}()
			c.each(callers, func(session *pgstore.Session, turn int) error {
				for {
					over := ended(changed) // before the try: what is denied now is denied for good
					admitted, wasStale, err := b.tryOne(session, turn%2 == 0)
					switch {
					case err != nil:
						return err
					case wasStale:
						stale.Add(1)
					case admitted:
						spent.Add(1)
					case over:
						return nil
					}
				}
			})
			if spent.Load() != capacity {
				t.Errorf("%d were admitted of %d, %d calls were stale", spent.Load(), capacity, stale.Load())
			}
			if deadlocks := scalar[int64](b, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"); deadlocks != 0 {
				t.Errorf("%d deadlocks", deadlocks)
			}
		})
	}
}

// Whoever ends overrides waits for a bucket while it holds none that stands
// behind it in the order in which decisions lock: else each would wait for the
// other.
func TestOverridesEndInTheOrderOfDecisions(t *testing.T) {
	t.Parallel()
	accounts := strings.Split("ABCDEFGH", "")
	for name, end := range map[string]func(b *bench) error{
		"expired": func(b *bench) error {
			_, err := b.store.ExpireAt(b.Context(), epochMicros+61*second)
			return err
		},
		"removed": func(b *bench) (err error) {
			for _, account := range accounts {
				err = errors.Join(err, b.removeOverride("p", account, second))
			}
			return err
		},
		"made exempt": func(b *bench) (err error) {
			for _, account := range accounts {
				put := b.overridePut("p", account, `{"action": "exempt", "reason": "why"}`)
				_, _, _, failed := b.store.PutOverrideAt(b.Context(), put, epochMicros+second)
				err = errors.Join(err, failed)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := shape{capacity: 10}
			b.install("p", 0, s, 0)
			for _, account := range accounts {
				put := b.overridePut("p", account, b.limitOf(s, 20))
				put.LastsMicros = 60 * second
				if _, _, _, err := b.store.PutOverrideAt(t.Context(), put, epochMicros); err != nil {
					t.Fatal(err)
				}
				b.spend(account, 1, second)
			}
			rows := scalar[int](b, "SELECT count(*) FROM ration.bucket_fast")
			if rows != 2*len(accounts) {
				t.Fatalf("%d rows of %d overrides", rows, len(accounts))
			}
			rival := b.connect(b.db.OwnerURL())
			lock := func(sql string) {
				t.Helper()
				if _, err := rival.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			lock("BEGIN")
			const one = "(SELECT key FROM ration.bucket_fast ORDER BY key OFFSET 3 LIMIT 1)"
			lock("SELECT FROM ration.bucket_fast WHERE key = " + one + " FOR NO KEY UPDATE")
			done := make(chan error, 1)
			go func() { done <- end(b) }()
			attempt(t, "it waits for the bucket", func() bool {
				return scalar[int](b, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") > 0
			})
			lock("SELECT FROM ration.bucket_fast WHERE key > " + one + " FOR NO KEY UPDATE NOWAIT")
			lock("COMMIT")
			if err := <-done; err != nil {
				t.Error(err)
			}
			if n := scalar[int](b, "SELECT count(*) FROM ration.override WHERE action = 'limit'"); n != 0 {
				t.Errorf("%d overrides are left", n)
			}
		})
	}
}

// tryOne asks one token for account A as an instance does that has just loaded
// the policies: by the paths of single buckets, or by the general one.
func (b *bench) tryOne(session *pgstore.Session, single bool) (admitted, stale bool, err error) {
	b.Helper()
	generation, all, err := b.store.Load(b.Context(), 0)
	if err != nil {
		return false, false, err
	}
	request := &policy.Request{}
	request.Values[policy.Account], request.Values[policy.Operation] = "A", "a"
	var matched policy.Matched
	if err := policy.Compile(generation, all).Match(request, &matched); err != nil {
		return false, false, err
	}
	check := matched.Checks[0]
	if !single {
		claims := &policy.Claims{
			Generation: generation, NowMicros: epochMicros + second, RetentionMicros: retention,
			Claims: []policy.Claim{{Checks: []policy.Check{check}}},
		}
		var verdicts policy.Verdicts
		err := session.Decide(b.Context(), policy.HoldWait, claims, &verdicts)
		if err != nil || verdicts.Stale || verdicts.Verdicts[0].Status == policy.ClaimAgain {
			return false, true, err
		}
		return verdicts.Verdicts[0].Allowed, false, nil
	}
	batch := &policy.Batch{
		Durability: check.Policy.Spec.Durability, Generation: generation, NowMicros: epochMicros + second,
		Asks: []policy.Ask{{Key: check.Key, Policy: check.Policy.Number, Count: 1, Cost: 1}},
	}
	var answers policy.Answers
	err = session.Take(b.Context(), batch, &answers)
	if err == nil && !answers.Stale && answers.Asks[0].Status == policy.Again {
		err = session.TakeNew(b.Context(), policy.HoldWait, batch, &answers)
	}
	if err != nil || answers.Stale || answers.Asks[0].Status == policy.Again {
		return false, true, err
	}
	return answers.Asks[0].Admitted == 1, false, nil
}
