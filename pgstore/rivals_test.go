package pgstore_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// A call that writes rows where it saw them waits for whoever is about to
// write one of them; then it charges nothing at all, also of keys that nobody
// wrote, and answers beside it what needed no charge. So it is whatever else
// has happened when it takes back what it had written.
func TestTryingChargesAllOrNothing(t *testing.T) {
	t.Parallel()
	for name, around := range map[string]struct {
		before, after []string // statements of the session
		changes       bool     // the policy does, while the session waits
	}{
		"alone":                    {},
		"while the policy changes": {changes: true},
		"in a savepoint":           {before: []string{"BEGIN", "SAVEPOINT s"}, after: []string{"RELEASE s", "COMMIT"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.setForService("statement_timeout", "60s")
			rival := b.connect(b.db.OwnerURL())
			session := b.session()
			for name, s := range algorithms(10) {
				if s.algorithm == policy.Concurrency {
					continue // whose rows are always locked
				}
				for _, s.durability = range []policy.Durability{policy.Fast, policy.Durable} {
					of := b.install(fmt.Sprintf("%s-%s", name, s.durability), 0, s, 0)
					b.tryBesideRival(session, rival, of, s, func() {
						if around.changes {
							b.describe(of, s)
						}
					}, around.before, around.after)
				}
			}
		})
	}
}

// tryBesideRival tries two keys of a policy, of which another session writes
// one first, and one that is spent; meanwhile is done while the try waits.
func (b *bench) tryBesideRival(session *pgstore.Session, rival *pgx.Conn, of *policy.Installed, s shape, meanwhile func(), before, after []string) {
	b.Helper()
	const written, other, like, spent = 1, 2, 3, 4
	b.claim(session, second, claim(check(of, written, 1), check(of, other, 1), check(of, like, 1)), claim(check(of, spent, 10)))
	run := func(conn *pgx.Conn, statements ...string) {
		b.Helper()
		for _, sql := range statements {
			if _, err := conn.Exec(b.Context(), sql); err != nil {
				b.Fatal(err)
			}
		}
	}
	run(rival, "BEGIN")
	key := check(of, written, 1).Key
	table := s.stateTable()
	tag, err := rival.Exec(b.Context(), "UPDATE "+table.Sanitize()+" SET version = version WHERE key = $1", key[:])
	if err != nil || tag.RowsAffected() != 1 {
		b.Fatalf("%s: %d rows of %s (%v)", of.ID, tag.RowsAffected(), table, err)
	}
	run(session.Conn(), before...)
	claims := b.claims(second, operating(of.ID, check(of, written, 1), check(of, other, 1)), claim(check(of, spent, 1)))
	var verdicts policy.Verdicts
	tried := make(chan error, 1)
	go func() { tried <- session.Decide(b.Context(), policy.HoldTry, claims, &verdicts) }()
	attempt(b, "it waits for the row", func() bool {
		return scalar[int](b, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") > 0
	})
	meanwhile()
	run(rival, "COMMIT")
	if err := <-tried; err != nil {
		b.Fatalf("%s: %v", of.ID, err)
	}
	run(session.Conn(), after...)
	if got := verdicts.Verdicts[0]; got.Status != policy.ClaimAgain || len(got.Parts) > 0 {
		b.Errorf("%s: beside a rival the claim is %+v", of.ID, got)
	}
	if got := verdicts.Verdicts[1]; got.Status != policy.ClaimDecided || got.Allowed {
		b.Errorf("%s: what a spent key denies is %+v", of.ID, got)
	}
	left := func(number uint64) int64 { return b.peek(session, second, of, number).Remaining }
	has := left(like)
	for _, number := range []uint64{written, other} {
		if got := left(number); got != has {
			b.Errorf("%s: key %d has %d left, and one that nobody tried %d", of.ID, number, got, has)
		}
	}
	claims.Generation = b.generation()
	if err := session.Decide(b.Context(), policy.HoldTry, claims, &verdicts); err != nil || !verdicts.Verdicts[0].Allowed {
		b.Errorf("%s: alone it is %+v (%v)", of.ID, verdicts.Verdicts[0], err)
	}
	if got := left(other); got != has-1 {
		b.Errorf("%s: %d left, want %d", of.ID, got, has-1)
	}
}

// describe installs a version of a policy that changes nothing that it keeps.
func (b *bench) describe(of *policy.Installed, s shape) {
	b.Helper()
	change := s.change(b)
	change.Spec.Description = "another"
	put := policy.Put{ID: of.ID, Expected: of.Version, Change: change, Author: policy.Author{Actor: "test"}}
	if _, _, err := b.store.PutAt(b.Context(), put, epochMicros); err != nil {
		b.Fatal(err)
	}
}

// stateTable is where what a policy keeps stands.
func (s shape) stateTable() pgx.Identifier {
	kind := map[policy.Algorithm]string{
		policy.TokenBucket: "bucket", policy.FixedWindow: "window", policy.SlidingWindowCounter: "window", policy.SlidingWindowLog: "log",
	}[s.algorithm]
	if s.strict {
		kind = "log"
	}
	return pgx.Identifier{"ration", fmt.Sprintf("%s_%s", kind, s.durability)}
}
