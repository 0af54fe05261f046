package pgstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// transactionID is that of the transaction a session has begun, "" when it has
// needed none.
func (b *bench) transactionID(session *pgstore.Session) (id string) {
	b.Helper()
	err := session.Conn().QueryRow(b.Context(), "SELECT coalesce(pg_current_xact_id_if_assigned()::text, '')").Scan(&id)
	if err != nil {
		b.Fatal(err)
	}
	return id
}

// Whoever is denied costs no write, whatever the algorithm: no transaction id,
// no WAL. Nor does a peek.
func TestDeniedClaimsWriteNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	for name, s := range algorithms(2) {
		for _, s.durability = range []policy.Durability{policy.Fast, policy.Durable} {
			of := b.install(fmt.Sprintf("%s-%s", name, s.durability), 0, s, 0)
			open := b.install(fmt.Sprintf("%s-%s-open", name, s.durability), 0, s, 0)
			if verdict := b.claim(session, second, claim(check(of, 1, 2)))[0]; !verdict.Allowed {
				t.Fatalf("%s: %+v", name, verdict)
			}
			before := b.stored()
			run := b.begin(session)
			for i, verdict := range b.claim(session, second,
				claim(check(of, 1, 1)),
				claim(check(of, 1, 3)),
				claim(check(of, 1, 1), check(open, 1, 1)),
				claim(check(open, 9, 3)),
				policy.Claim{Peek: true, Checks: []policy.Check{check(of, 1, 1), check(open, 1, 1)}},
				policy.Claim{Peek: true, Checks: []policy.Check{check(open, 1, 1)}},
			) {
				if verdict.Status != policy.ClaimDecided || verdict.Allowed != (i == 5) {
					t.Errorf("%s, %s, claim %d: %+v", name, s.durability, i, verdict)
				}
			}
			if id := b.transactionID(session); id != "" {
				t.Errorf("%s, %s: transaction id %s", name, s.durability, id)
			}
			run("COMMIT")
			if after := b.stored(); after != before {
				t.Errorf("%s, %s: denials left\n%s\nbefore\n%s", name, s.durability, after, before)
			}
		}
	}
}

// A request of 32 policies is one transaction: it takes one id, and no others
// for parts of it. Alone on the server, where ids are counted.
func TestManyPoliciesAreOneTransaction(t *testing.T) { //nolint:paralleltest // see above
	b := newBench(t)
	session := b.session()
	var checks []policy.Check
	for len(checks) < 32 {
		for name, s := range algorithms(100) {
			if len(checks) < 32 {
				s.durability = policy.Durability(len(checks) % 2)
				of := b.install(fmt.Sprintf("%s-%d", name, len(checks)), 0, s, 0)
				checks = append(checks, check(of, 1, 1))
			}
		}
	}
	b.claim(session, second, claim(checks...))
	const next, turns = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint", 20
	before := scalar[int64](b, next)
	for turn := range turns {
		if verdict := b.claim(session, second, operating(fmt.Sprint(turn), checks...))[0]; !verdict.Allowed || len(verdict.Parts) != 32 {
			t.Fatalf("%+v", verdict)
		}
	}
	// The server's own upkeep takes an id now and then.
	if used := scalar[int64](b, next) - before; used > 2*turns {
		t.Errorf("%d transaction ids for %d requests of 32 policies", used, turns)
	}
}

// Windows are counted on in their rows, on their pages. It runs alone, as the
// same test of buckets does.
func TestWindowsAreHeapOnlyUpdates(t *testing.T) { //nolint:paralleltest // see above
	b := newBench(t)
	indexed := scalar[string](b, `SELECT coalesce(string_agg(DISTINCT a.attname, ', '), '') FROM pg_index AS i
		JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
		WHERE i.indrelid IN ('ration.window_fast'::regclass, 'ration.window_durable'::regclass) AND a.attname NOT IN ('shard', 'key')`)
	if indexed != "" {
		t.Errorf("what a decision writes is indexed: %s", indexed)
	}
	random := newRandom(t)
	const keys, calls, size = 1000, 100, 64
	for _, durability := range []policy.Durability{policy.Fast, policy.Durable} {
		s := algorithms(1_000_000)["fixed_window"]
		s.durability = durability
		of := b.install(durability.String(), 0, s, 0)
		table := fmt.Sprintf("ration.window_%s", durability)
		b.exec(`INSERT INTO `+table+` (start, current, previous, key, shard, policy, version)
			SELECT $1, 0, 0, (lpad(to_hex(i), 16, '0') || lpad(to_hex(p.number), 16, '0'))::uuid, 0, p.number, 1
			FROM ration.policy AS p, generate_series(0, $2::int - 1) AS i WHERE p.number = $3`, epochMicros, keys, of.Number)
		session := b.store.NewSession()
		claims := b.claims(second)
		for range calls {
			claims.Claims = claims.Claims[:0]
			for _, number := range random.Perm(keys)[:size] {
				claims.Claims = append(claims.Claims, claim(check(of, uint64(number), 1)))
			}
			if _, err := decideClaims(session, claims); err != nil {
				t.Fatal(err)
			}
		}
		// A backend's figures are there for others once it has ended or says so.
		if _, err := session.Conn().Exec(context.Background(), "SELECT pg_stat_force_next_flush()"); err != nil {
			t.Fatal(err)
		}
		session.Close()
		updates := scalar[int64](b, "SELECT pg_stat_get_tuples_updated($1::text::regclass)", table)
		hot := scalar[int64](b, "SELECT pg_stat_get_tuples_hot_updated($1::text::regclass)", table)
		t.Logf("%s: %d of %d updates were heap-only", durability, hot, updates)
		if updates < calls*size || hot*100 < updates*90 {
			t.Errorf("%s: %d of %d updates were heap-only, want 90%%", durability, hot, updates)
		}
	}
}
