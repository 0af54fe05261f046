package pgstore_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// However many ask at once, a key gives what it has: whether it has no row
// yet, one token left, or fewer than half of what is asked.
func TestParallelClaimsGetTheLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.crew(8)
	const keys = 20
	for name, s := range algorithms(10) {
		of, few := b.install(name, 0, s, 0), b.install(name+"-few", 0, algorithms(3)[name], 0)
		one := func(of *policy.Installed, base uint64) *policy.Claims {
			claims := b.claims(second)
			for key := range uint64(keys) {
				claims.Claims = append(claims.Claims, claim(check(of, base+key, 1)))
			}
			return claims
		}
		primed := one(of, keys)
		for range 9 {
			if _, err := decideClaims(c.sessions[0], primed); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range []struct {
			name        string
			claims      *policy.Claims
			calls, want int
		}{
			{"no row, 25 for 10", one(of, 0), 25, 10},
			{"primed, 10 for 1", primed, 10, 1},
			{"no row, 50 for 3", one(few, 2*keys), 50, 3},
		} {
			var allowed [keys]atomic.Int64
			c.each(step.calls, func(session *pgstore.Session, _ int) error {
				verdicts, err := decideClaims(session, step.claims)
				for i := range verdicts {
					if verdicts[i].Allowed {
						allowed[i].Add(1)
					}
				}
				return err
			})
			for i := range allowed {
				if n := allowed[i].Load(); n != int64(step.want) {
					t.Errorf("%s, %s: %d allowed for key %d, want %d", name, step.name, n, i, step.want)
				}
			}
		}
	}
	for _, table := range stateTables[:7] {
		if n := scalar[int](b, "SELECT count(*) - count(DISTINCT key) FROM ration."+table); n != 0 {
			t.Errorf("%s has %d rows too many", table, n)
		}
	}
}

// Nothing is counted twice or lost, whatever calls the claims come in.
func TestAThousandParallelClaimsAreAThousand(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	random := newRandom(t)
	for name, s := range algorithms(1000) {
		if s.algorithm != policy.SlidingWindowLog {
			s.capacity = 10_000
		}
		of := b.install(name, 0, s, 0)
		var sizes []int
		for left := 1000; left > 0; left -= sizes[len(sizes)-1] {
			sizes = append(sizes, min(left, 1+random.IntN(40)))
		}
		c := b.crew(4)
		c.each(len(sizes), func(session *pgstore.Session, turn int) error {
			claims := b.claims(second)
			for range sizes[turn] {
				claims.Claims = append(claims.Claims, claim(check(of, 1, 1)))
			}
			verdicts, err := decideClaims(session, claims)
			for i := range verdicts {
				if !verdicts[i].Allowed {
					return fmt.Errorf("denied: %+v", verdicts[i])
				}
			}
			return err
		})
		if left := b.peek(c.sessions[0], second, of, 1).Remaining; left != s.capacity-1000 {
			t.Errorf("%s: %d used, want 1000", name, s.capacity-left)
		}
	}
}

// A database whose sessions begin under another isolation level serves as any
// other.
func TestDefaultIsolationDoesNotMatter(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.exec(fmt.Sprintf("ALTER DATABASE %s SET default_transaction_isolation = '%s'", pgx.Identifier{b.db.Name}.Sanitize(), level))
			window := b.install("window", 0, algorithms(100)["fixed_window"], 0)
			slots := b.install("slots", 0, algorithms(5)["concurrency"], 0)
			c := b.crew(8)
			c.sessions = append(c.sessions, b.ownersSession())
			var allowed atomic.Int64
			c.each(500, func(session *pgstore.Session, turn int) error {
				verdicts, err := decideClaims(session, b.claims(second, claim(check(window, 1, 1)), claim(check(window, uint64(turn)+2, 1))))
				if err != nil {
					return err
				}
				if verdicts[0].Allowed {
					allowed.Add(1)
				}
				if !verdicts[1].Allowed {
					return fmt.Errorf("the first claim of key %d: %+v", turn+2, verdicts[1])
				}
				return nil
			})
			if n := allowed.Load(); n != 100 {
				t.Errorf("%d allowed on one key, want 100", n)
			}
			c.each(200, func(session *pgstore.Session, _ int) error {
				verdicts, err := decideClaims(session, b.claims(second, claim(check(slots, 1, 1))))
				if err != nil || !verdicts[0].Allowed {
					return err
				}
				released, err := b.store.ReleaseSlotAt(t.Context(), verdicts[0].Parts[0].Slot.ID, epochMicros+second)
				if err == nil && !released {
					err = fmt.Errorf("%v was not live", verdicts[0].Parts[0].Slot)
				}
				return err
			})
			if n := scalar[int](b, "SELECT count(*) FROM ration.slot"); n != 0 {
				t.Errorf("%d slots are left of those that were released", n)
			}
		})
	}
}

// ownersSession is a session of a program that connects as the owner.
func (b *bench) ownersSession() *pgstore.Session {
	b.Helper()
	store, err := pgstore.Open(b.Context(), pgstore.Config{URL: b.db.OwnerURL(), CallTimeout: callTimeout})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	session := store.NewSession()
	b.Cleanup(session.Close)
	return session
}

// Fifty workers ask for the same few keys of every algorithm in whatever
// order, down both paths, while operations are settled, slots end and the
// cleaner runs: nobody waits in a circle.
func TestOppositeOrdersDoNotDeadlock(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	random := newRandom(t)
	var policies []*policy.Installed
	for name, s := range algorithms(1000) {
		for _, s.durability = range []policy.Durability{policy.Fast, policy.Durable} {
			policies = append(policies, b.install(fmt.Sprintf("%s-%s", name, s.durability), 0, s, 0))
		}
	}
	const workers, turns, keys = 50, 400, 3
	seeds := make([]uint64, turns)
	for i := range seeds {
		seeds[i] = random.Uint64()
	}
	const deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
	before := scalar[int64](b, deadlocks)
	b.crew(workers).each(turns, func(session *pgstore.Session, turn int) error {
		random := rand.New(rand.NewPCG(seeds[turn], 0))
		if turn%50 == 0 {
			_, err := b.store.Clean(t.Context(), 0, epochMicros+second)
			return err
		}
		var checks []policy.Check
		for _, i := range random.Perm(len(policies))[:1+random.IntN(5)] {
			checks = append(checks, check(policies[i], random.Uint64N(keys), 1+random.Int64N(3)))
		}
		if random.IntN(4) == 0 {
			batch := &policy.Batch{Generation: b.generation(), NowMicros: epochMicros + second}
			for _, c := range checks {
				if limit := c.Policy.Spec; limit.Limit.Algorithm == policy.TokenBucket && limit.Durability == policy.Fast {
					batch.Asks = append(batch.Asks, policy.Ask{Key: c.Key, Policy: c.Policy.Number, Count: 1, Cost: c.Cost})
				}
			}
			if len(batch.Asks) > 0 {
				_, err := through(session, batch)
				return err
			}
		}
		operation := fmt.Sprint(turn)
		verdicts, err := decideClaims(session, b.claims(second, operating(operation, checks...), claim(checks[:1]...)))
		if err != nil || !verdicts[0].Allowed {
			return err
		}
		for _, part := range verdicts[0].Parts {
			if part.Slot != (policy.Slot{}) {
				if _, err := b.store.ReleaseSlotAt(t.Context(), part.Slot.ID, epochMicros+second); err != nil {
					return err
				}
			}
		}
		_, err = b.store.SettleAt(t.Context(), policy.Settlement{
			Operation: policy.OperationKeyOf("", "", operation), ActualCost: random.Int64N(4),
		}, epochMicros+second)
		return err
	})
	if after := scalar[int64](b, deadlocks); after != before {
		t.Errorf("%d deadlocks", after-before)
	}
}

// What a call locks beside rows ends with its transaction, also where a
// call is broken off; and keys that share a lock's number only wait for each
// other.
func TestNoLockOutlivesItsCall(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	of := b.install("p", 0, algorithms(1)["fixed_window"], 0)
	c := b.crew(4)
	first, second64 := check(of, 1, 1), check(of, 1, 1)
	second64.Key[8] = 1 // the same first 64 bits
	var allowed atomic.Int64
	c.each(40, func(session *pgstore.Session, turn int) error {
		one := []policy.Check{first, second64}[turn%2]
		op := operating(fmt.Sprint(turn), one)
		var verdicts policy.Verdicts
		for {
			if err := session.Decide(t.Context(), policy.HoldAlone, b.claims(second, op), &verdicts); err != nil {
				return err
			}
			if verdicts.Verdicts[0].Status != policy.ClaimAgain {
				break
			}
		}
		if verdicts.Verdicts[0].Allowed {
			allowed.Add(1)
		}
		if turn%10 == 9 { // broken off in the middle of it
			conn := session.Conn()
			if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
				return err
			}
			if _, err := decideClaims(session, b.claims(second, operating("broken off "+fmt.Sprint(turn), one))); err != nil {
				return err
			}
			session.Close()
		}
		return nil
	})
	if n := allowed.Load(); n != 2 {
		t.Errorf("%d allowed for two keys of one each", n)
	}
	attempt(t, "the sessions broken off end", func() bool {
		return scalar[int](b, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'`) == 0
	})
	if n := scalar[int](b, `SELECT count(*) FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
		WHERE l.locktype = 'advisory' AND d.datname = current_database()`); n != 0 {
		t.Errorf("%d advisory locks are held by idle sessions", n)
	}
	if n := scalar[int](b, "SELECT count(*) FROM ration.operation"); n != 40 {
		t.Errorf("%d outcomes are stored, want one for each call that was not broken off", n)
	}
}
