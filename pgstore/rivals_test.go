package pgstore_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// A call that writes rows where it saw them waits for whoever is about to
// write one of them; then it charges nothing at all, also of keys that nobody
// wrote, and answers beside it what needed no charge.
func TestTryingChargesAllOrNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.setForService("statement_timeout", "60s")
	rival := b.connect(b.db.OwnerURL())
	session := b.session()
	const written, other, spent = 1, 2, 3
	for name, s := range algorithms(10) {
		if s.algorithm == policy.Concurrency {
			continue // whose rows are always locked
		}
		for _, s.durability = range []policy.Durability{policy.Fast, policy.Durable} {
			of := b.install(fmt.Sprintf("%s-%s", name, s.durability), 0, s, 0)
			b.claim(session, second, claim(check(of, written, 1), check(of, other, 1)), claim(check(of, spent, 10)))
			key := check(of, written, 1).Key
			if _, err := rival.Exec(t.Context(), "BEGIN"); err != nil {
				t.Fatal(err)
			}
			table := fmt.Sprintf("%s_%s", map[policy.Algorithm]string{
				policy.TokenBucket: "bucket", policy.FixedWindow: "window", policy.SlidingWindowCounter: "window", policy.SlidingWindowLog: "log",
			}[s.algorithm], s.durability)
			if s.strict {
				table = fmt.Sprintf("log_%s", s.durability)
			}
			tag, err := rival.Exec(t.Context(), "UPDATE "+pgx.Identifier{"ration", table}.Sanitize()+" SET version = version WHERE key = $1", key[:])
			if err != nil || tag.RowsAffected() != 1 {
				t.Fatalf("%s: %d rows of %s (%v)", of.ID, tag.RowsAffected(), table, err)
			}
			claims := b.claims(second, operating(of.ID, check(of, written, 1), check(of, other, 1)), claim(check(of, spent, 1)))
			var verdicts policy.Verdicts
			tried := make(chan error, 1)
			go func() { tried <- session.Decide(t.Context(), policy.HoldTry, claims, &verdicts) }()
			attempt(t, "it waits for the row", func() bool {
				return scalar[int](b, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") > 0
			})
			if _, err := rival.Exec(t.Context(), "COMMIT"); err != nil {
				t.Fatal(err)
			}
			if err := <-tried; err != nil {
				t.Fatalf("%s: %v", of.ID, err)
			}
			if got := verdicts.Verdicts[0]; got.Status != policy.ClaimAgain || len(got.Parts) > 0 {
				t.Errorf("%s: beside a rival the claim is %+v", of.ID, got)
			}
			if got := verdicts.Verdicts[1]; got.Status != policy.ClaimDecided || got.Allowed {
				t.Errorf("%s: what a spent key denies is %+v", of.ID, got)
			}
			for _, number := range []uint64{written, other} {
				if left := b.peek(session, second, of, number).Remaining; left != 9 {
					t.Errorf("%s: key %d has %d left of the 9 it had", of.ID, number, left)
				}
			}
			if err := session.Decide(t.Context(), policy.HoldTry, claims, &verdicts); err != nil || !verdicts.Verdicts[0].Allowed {
				t.Errorf("%s: alone it is %+v (%v)", of.ID, verdicts.Verdicts[0], err)
			}
			if left := b.peek(session, second, of, other).Remaining; left != 8 {
				t.Errorf("%s: %d left, want 8", of.ID, left)
			}
		}
	}
}
