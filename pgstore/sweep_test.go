package pgstore_test

import (
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// sweep does pieces at an instant after the epoch until there is nothing more
// to do, and says how many.
func (b *bench) sweep(atMicros int64) (pieces int) {
	b.Helper()
	const most = 1000
	for ; pieces < most; pieces++ {
		_, more, err := b.store.Sweep(b.Context(), 1, epochMicros+atMicros)
		if err != nil {
			b.Fatal(err)
		}
		if !more {
			return pieces
		}
	}
	b.Fatalf("sweeping is not over after %d pieces", most)
	return pieces
}

// swept is what the audit says of the sweeps of a policy, in order.
func (b *bench) swept(of *policy.Installed) string {
	b.Helper()
	return scalar[string](b, `SELECT coalesce(string_agg(format('version %s: %s settled, %s clamped, %s', version_after, settled, clamped, reason),
		'; ' ORDER BY id), '') FROM ration.audit WHERE action = 'policy.swept' AND policy = $1`, of.ID)
}

// change installs a version that says what becomes of balances.
func (b *bench) change(of *policy.Installed, s shape, balances policy.Balances, start policy.Start, atMicros int64) *policy.Installed {
	b.Helper()
	change := s.change(b)
	change.Balances, change.Start = balances, start
	installed, _, err := b.store.PutAt(b.Context(),
		policy.Put{ID: of.ID, Expected: of.Version, Change: change, Author: policy.Author{Actor: "test"}}, epochMicros+atMicros)
	if err != nil {
		b.Fatalf("change %s: %v", of.ID, err)
	}
	return installed
}

// charge has a session charge so many keys of a policy one token each.
func (b *bench) charge(session *pgstore.Session, of *policy.Installed, keys uint64, atMicros int64) {
	b.Helper()
	claims := b.claims(atMicros)
	for key := range keys {
		claims.Claims = append(claims.Claims, claim(check(of, key, 1)))
	}
	if _, err := decideClaims(session, claims); err != nil {
		b.Fatal(err)
	}
}

// hexed is a key as PostgreSQL reads it.
func hexed(key policy.Key) string { return hex.EncodeToString(key[:]) }

// A sweep settles every balance as a decision would, tells how many it was and
// how many were cut, and leaves other policies alone.
func TestASweepSettlesEveryBalance(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	const keys = 450 // more than four pieces
	other := b.install("other", 0, shape{capacity: 40}, 0)
	b.charge(session, other, keys, second)
	for _, durability := range []policy.Durability{policy.Fast, policy.Durable} {
		table := "ration.bucket_" + durability.String()
		of := b.install(durability.String(), 0, shape{capacity: 40, durability: durability}, 0)
		b.charge(session, of, keys, second)
		b.exec("UPDATE "+table+" SET balance = balance / 10 WHERE policy = $1 AND key < $2::text::uuid", of.Number, hexed(keyOf(150)))
		of = b.install(of.ID, 1, shape{capacity: 20, durability: durability}, 2*second)
		b.expect(session, of, 0, 2*second, 1, 2) // decisions settle their own: one that was not cut
		b.expect(session, of, 200, 2*second, 1, 19)
		b.claim(session, 2*second, claim(check(of, 201, 1)))

		if pieces := b.sweep(2 * second); pieces != 0 || b.swept(of) != "" {
			t.Errorf("%s: %d pieces while calls of the version before may run", durability, pieces)
		}
		want := scalar[string](b, `SELECT string_agg(format('%s %s', key, ration.balance_at_v1(policy, version, balance, at, $1)), ' ' ORDER BY key)
			FROM `+table, epochMicros+3*second)
		b.sweep(3 * second)
		got := scalar[string](b, `SELECT string_agg(format('%s %s', key, ration.balance_at_v1(policy, version, balance, at, $1)), ' ' ORDER BY key)
			FROM `+table, epochMicros+3*second)
		if got != want {
			t.Errorf("%s: sweeping changed what keys hold:\n%s\nbefore\n%s", durability, got, want)
		}
		if n := scalar[int](b, "SELECT count(*) FROM "+table+" WHERE policy = $1 AND version < 2", of.Number); n != 0 {
			t.Errorf("%s: %d rows are not settled", durability, n)
		}
		if got, want := b.swept(of), "version 2: 450 settled, 300 clamped, every balance is settled"; got != want {
			t.Errorf("%s: %s, want %s", durability, got, want)
		}
	}
	if n := scalar[int](b, "SELECT (SELECT count(*) FROM ration.sweep) + (SELECT count(*) FROM ration.carried)"); n != 0 {
		t.Errorf("%d rows are left about sweeps that are over", n)
	}
	if b.sweep(hour) != 0 {
		t.Error("there is more to do when everything is settled")
	}
}

// A second change takes over what is left of the first one's sweep, and each
// is told for itself.
func TestASecondChangeOvertakesASweep(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	of := b.install("p", 0, shape{capacity: 100}, 0)
	b.charge(session, of, 450, second)
	of = b.install("p", 1, shape{capacity: 50}, second)
	b.expect(session, of, 300, 2*second, 1, 49)
	for range 2 { // the pass begins; the first stretch
		if _, more, err := b.store.Sweep(t.Context(), 1, epochMicros+2*second); !more || err != nil {
			t.Fatalf("more %t, %v", more, err)
		}
	}
	b.install("p", 2, shape{capacity: 100}, 3*second)
	of = b.install("p", 3, shape{capacity: 100, shadow: true}, 3*second) // of the same figures: no change to sweep for
	b.expect(session, of, 0, 3*second, 1, 49)
	b.expect(session, of, 301, 3*second, 1, 49)
	b.sweep(4 * second)
	if got, want := b.swept(of), "version 2: 101 settled, 101 clamped, overtaken by version 3; version 3: 450 settled, 349 clamped, every balance is settled"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if n := scalar[int](b, "SELECT count(*) FROM ration.bucket_fast WHERE version <> 4"); n != 0 {
		t.Errorf("%d rows are not of the version in force", n)
	}
}

// Whatever begins anew is as absent, and a sweep takes it away; what counts
// on is left.
func TestASweepRemovesWhatCountsNoMore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	const keys = 300
	at := second
	for name, s := range algorithms(10) {
		if s.algorithm == policy.TokenBucket || s.algorithm == policy.Concurrency {
			continue
		}
		for _, s.durability = range []policy.Durability{policy.Fast, policy.Durable} {
			s.capacity = 10
			of := b.install(name+"-"+s.durability.String(), 0, s, at)
			b.charge(session, of, keys, at)
			s.capacity = 5
			of = b.change(of, s, policy.Keep, policy.StartNone, at)
			if pieces := b.sweep(at + second); pieces != 0 {
				t.Errorf("%s: %d pieces for what counts on as it stands", of.ID, pieces)
			}
			of = b.change(of, s, policy.Reset, policy.StartNone, at+second)
			b.claim(session, at+second, claim(check(of, 7, 2)))
			b.sweep(at + 2*second)
			if got, want := b.swept(of), "version 3: 300 settled, 0 clamped, every balance is settled"; got != want {
				t.Errorf("%s: %s, want %s", of.ID, got, want)
			}
			if left := b.peek(session, at+2*second, of, 7).Remaining; left != 3 {
				t.Errorf("%s: %d left of the key that was charged since, want 3", of.ID, left)
			}
			before := b.stored()
			of = b.change(of, shape{capacity: 10, durability: s.durability}, policy.Restart, policy.StartEmpty, at+2*second)
			at += 3 * second
			b.sweep(at)
			if got, want := b.swept(of), "version 3: 300 settled, 0 clamped, every balance is settled; version 4: 1 settled, 0 clamped, every balance is settled"; got != want {
				t.Errorf("%s: %s, want %s", of.ID, got, want)
			}
			if b.stored() == before || b.peek(session, at, of, 7).Remaining != 0 {
				t.Errorf("%s: state of the algorithm before is left", of.ID)
			}
		}
	}
}

// A key that is reset before a sweep comes to it is counted with it, once, and
// as one that no change cut; a key without a row had no balance to settle.
func TestAResetIsCountedByTheSweepThatIsOpen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	for name, s := range algorithms(10) {
		if s.algorithm == policy.Concurrency {
			continue
		}
		for _, s.durability = range []policy.Durability{policy.Fast, policy.Durable} {
			s.capacity = 10
			of := b.install(name+"-"+s.durability.String(), 0, s, 0)
			for _, caller := range []string{"A", "B"} {
				b.claim(session, second, claim(ofAccount(of, caller, 1)))
			}
			rule, clamped := policy.Reset, 0
			if s.algorithm == policy.TokenBucket {
				rule, clamped = policy.Keep, 1 // what A held was never cut
			}
			s.capacity = 5
			of = b.change(of, s, rule, policy.StartNone, second)
			for _, caller := range []string{"A", "A", "absent"} {
				if _, err := b.resetKey(of.ID, caller, policy.StartEmpty, false, second); err != nil {
					t.Fatal(err)
				}
			}
			b.sweep(2 * second)
			if got, want := b.swept(of), fmt.Sprintf("version 2: 2 settled, %d clamped, every balance is settled", clamped); got != want {
				t.Errorf("%s: %s, want %s", of.ID, got, want)
			}
		}
	}
}

// A row that somebody holds is settled when it is free, and no sooner is the
// sweep over.
func TestASweepWaitsForNobodyAndForgetsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	of := b.install("p", 0, shape{capacity: 10}, 0)
	b.charge(session, of, 10, second)
	of = b.install("p", 1, shape{capacity: 5}, second)
	tx, err := b.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), "SELECT FROM ration.bucket_fast WHERE key = $1::text::uuid FOR UPDATE", hexed(check(of, 5, 1).Key)); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, more, err := b.store.Sweep(t.Context(), 1, epochMicros+2*second); !more || err != nil {
			t.Fatalf("more %t, %v", more, err)
		}
	}
	if n := scalar[int](b, "SELECT count(*) FROM ration.bucket_fast WHERE version = 1"); n != 1 || b.swept(of) != "" {
		t.Errorf("%d rows are not settled while one is held, and the audit says %q", n, b.swept(of))
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.sweep(2 * second)
	if got, want := b.swept(of), "version 2: 10 settled, 10 clamped, every balance is settled"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A loss of the fast state in the middle of a pass ends it no worse than it
// would have ended: what is left is settled, and what is gone is no balance.
func TestASweepSurvivesALossOfFastState(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	fast := b.install("fast", 0, shape{capacity: 10}, 0)
	durable := b.install("durable", 0, shape{capacity: 10, durability: policy.Durable}, 0)
	b.charge(session, fast, 450, second)
	b.charge(session, durable, 250, second)
	fast = b.install("fast", 1, shape{capacity: 5}, second)
	durable = b.install("durable", 1, shape{capacity: 5, durability: policy.Durable}, second)
	for range 2 { // the pass begins; the first stretch
		if _, more, err := b.store.Sweep(t.Context(), 1, epochMicros+2*second); !more || err != nil {
			t.Fatalf("more %t, %v", more, err)
		}
	}
	b.lose()
	b.expect(session, durable, 240, 3*second, 1, 4)
	b.sweep(3 * second)
	if n := b.recover(3 * second); n != 1 {
		t.Fatalf("%d sessions found the loss", n)
	}
	b.expect(session, fast, 1, 4*second, 1, 4)
	if got, want := b.swept(fast), "version 2: 100 settled, 100 clamped, every balance is settled"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := b.swept(durable), "version 2: 250 settled, 250 clamped, every balance is settled"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Instances share the time that sweeping may take, also where the clock was
// set back meanwhile.
func TestSweepersRest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	of := b.install("p", 0, shape{capacity: 10}, 0)
	b.charge(session, of, 10, second)
	b.install("p", 1, shape{capacity: 5}, 100*second)
	now := epochMicros + 200*second
	rest, more, err := b.store.Sweep(t.Context(), 10, now)
	if err != nil || !more || rest <= 0 {
		t.Fatalf("rest %v, more %t, %v", rest, more, err)
	}
	if _, more, err := b.store.Sweep(t.Context(), 10, now+rest.Microseconds()-1); more || err != nil {
		t.Errorf("within the rest: more %t, %v", more, err)
	}
	if _, more, err := b.store.Sweep(t.Context(), 1, now+rest.Microseconds()); !more || err != nil {
		t.Errorf("behind the rest: more %t, %v", more, err)
	}
	if _, more, err := b.store.Sweep(t.Context(), 1, now-90*second); !more || err != nil {
		t.Errorf("after the clock was set back: more %t, %v", more, err)
	}
}
