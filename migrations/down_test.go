package migrations_test

import (
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/migrations"
)

// firstSteps is the embedded history as it was after so many steps.
func firstSteps(t *testing.T, steps uint) migrations.Fixture {
	t.Helper()
	names, err := fs.Glob(migrations.Embedded(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, name := range names {
		if name >= fmt.Sprintf("%06d", steps+1) {
			continue
		}
		text, err := fs.ReadFile(migrations.Embedded(), name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	return migrations.NewFixture(t, files)
}

// state is a database's schema with the text of its functions.
func state(t *testing.T, db *dbtest.DB) (schema string, functions map[string]string) {
	t.Helper()
	tx, err := connect(t, db.OwnerURL()).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }() // it has only looked, and must not stand in the next step's way
	return dumpOf(t, db), definitions(t, tx)
}

// Each step down gives what the step before it gave, the functions that it
// changed included.
func TestAStepDownGivesWhatWasBefore(t *testing.T) {
	t.Parallel()
	down := migrate(t)
	for step := migrations.Latest() - 1; step > 0; step-- {
		if err := migrations.DownOne(t.Context(), down.OwnerURL()); err != nil {
			t.Fatal(err)
		}
		up := dbtest.Empty(t)
		if err := firstSteps(t, step).Up(t.Context(), up.OwnerURL()); err != nil {
			t.Fatal(err)
		}
		wantSchema, wantFunctions := state(t, up)
		gotSchema, gotFunctions := state(t, down)
		if diff := cmp.Diff(wantSchema, gotSchema); diff != "" {
			t.Errorf("down to step %d gives another schema (+) than up to it (-):\n%s", step, diff)
		}
		if diff := cmp.Diff(wantFunctions, gotFunctions); diff != "" {
			t.Errorf("down to step %d gives other functions (+) than up to it (-):\n%s", step, diff)
		}
	}
}

// The program of the second step reads nothing but token buckets: going back to
// it takes the others away, and leaves those.
func TestGoingDownTakesWhatHasNoRoom(t *testing.T) {
	t.Parallel()
	db := migrate(t)
	put := func(id, limit, mode string, n, d int) {
		t.Helper()
		if got := one[string](t, db, fmt.Sprintf(`SELECT o_outcome FROM ration.put_policy_v1('%s', 0,
			'{"per": ["account"], "limit": %s, "durability": "fast", "mode": "%s"}', %d, %d, 10, 'keep', NULL, 'test', '', '', '')`,
			id, limit, mode, n, d)); got != "created" {
			t.Fatalf("policy %s: %s", id, got)
		}
	}
	const bucket = `{"algorithm": "token_bucket", "capacity": 10, "refillTokens": 1, "refillSeconds": 1}`
	put("bucket", bucket, "enforce", 1, 1_000_000)
	put("off", bucket, "disabled", 1, 1_000_000)
	put("shadow", bucket, "shadow", 1, 1_000_000)
	put("window", `{"algorithm": "fixed_window", "limit": 10, "windowSeconds": 60}`, "enforce", 1, 1)
	put("slots", `{"algorithm": "concurrency", "limit": 10, "ttlSeconds": 60}`, "enforce", 1, 1)
	put("again", bucket, "enforce", 1, 1_000_000)
	put("gone", bucket, "enforce", 1, 1_000_000)
	exec(t, db, `INSERT INTO ration.bucket_fast SELECT 1, 1, gen_random_uuid(), 0, number, 1, 0 FROM ration.policy WHERE id IN ('again', 'bucket')`)
	if got := one[string](t, db, `SELECT o_outcome FROM ration.put_policy_v1('again', 1, '{"per": ["account"], "limit": `+bucket+`,
		"durability": "fast", "mode": "enforce"}', 1, 1000000, 10, 'reset', NULL, 'test', '', '', '')`); got != "changed" {
		t.Fatalf("reset: %s", got)
	}
	if got := one[string](t, db, "SELECT o_outcome FROM ration.delete_policy_v1('gone', 1, 'test', '', '', '')"); got != "deleted" {
		t.Fatalf("deletion: %s", got)
	}
	if got := one[string](t, db, `SELECT o_outcome FROM ration.put_override_v1('bucket', '{"account": "A"}', 'limit', '`+bucket+`', 1, 1000000, 10,
		NULL, NULL, 'test', '', '', '')`); got != "set" {
		t.Fatalf("override: %s", got)
	}
	exec(t, db, `INSERT INTO ration.bucket_fast SELECT 1, 1, gen_random_uuid(), 0, number, version, 0 FROM ration.policy WHERE parent IS NOT NULL`)
	before := one[int64](t, db, "SELECT generation FROM ration.policy_set")
	for range migrations.Latest() - 2 {
		if err := migrations.DownOne(t.Context(), db.OwnerURL()); err != nil {
			t.Fatal(err)
		}
	}
	left := one[[]string](t, db, "SELECT array_agg(p.id::text ORDER BY p.id) FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version)")
	if want := []string{"again", "bucket", "off"}; !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
	if versions := one[int](t, db, "SELECT count(*) FROM ration.policy_version"); versions != 4 {
		t.Errorf("%d versions are left, want 4", versions)
	}
	// What was reset must not be carried over by a function that knows nothing of it, and no cleaner finds what is no policy's.
	if kept := one[string](t, db, `SELECT string_agg(coalesce(p.id, 'nobody'), ',') FROM ration.bucket_fast AS b
		LEFT JOIN ration.policy AS p ON p.number = b.policy`); kept != "bucket,bucket" {
		t.Errorf("buckets of %s are left, want those of bucket", kept)
	}
	if after := one[int64](t, db, "SELECT generation FROM ration.policy_set"); after <= before {
		t.Errorf("generation %d, it was %d: nobody would notice", after, before)
	}
}
