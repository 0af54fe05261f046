package pgstore_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rationhq/ration/policy"
)

// remove deletes a policy at an instant after the epoch.
func (b *bench) remove(id string, expected int, atMicros int64) error {
	b.Helper()
	return b.store.DeleteAt(b.Context(), policy.Removal{
		ID: id, Expected: expected, Reason: "why", Author: policy.Author{Actor: "ann", Role: policy.Admin, RequestID: "r1"},
	}, epochMicros+atMicros)
}

// putBy installs a version by a rule for what the policy keeps.
func (b *bench) putBy(id string, expected int, s shape, rule policy.Balances, start policy.Start, atMicros int64) (*policy.Installed, error) {
	b.Helper()
	change := s.change(b)
	change.Balances, change.Start, change.Reason = rule, start, "why"
	put := policy.Put{ID: id, Expected: expected, Change: change, Author: policy.Author{Actor: "ann", Role: policy.Operator, RequestID: "r1"}}
	installed, _, err := b.store.PutAt(b.Context(), put, epochMicros+atMicros)
	return installed, err
}

// reasonOf gives the reason of an error, "" where it has none.
func reasonOf(err error) policy.Reason {
	if known, ok := errors.AsType[*policy.Error](err); ok {
		return known.Reason
	}
	return ""
}

func TestADeletedPolicyIsGoneAndKeepsItsHistory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := t.Context()
	b.install("p", 0, shape{capacity: 10}, 0)
	b.install("p", 1, shape{capacity: 20}, second)
	b.install("stays", 0, shape{capacity: 1}, 0)
	loaded := b.generation()
	for _, expected := range []int{0, 1, 3} {
		if err := b.remove("p", expected, second); reasonOf(err) != policy.ReasonVersionConflict {
			t.Errorf("deleted at version %d: %v", expected, err)
		}
	}
	if err := b.remove("unheard", 1, second); reasonOf(err) != policy.ReasonVersionConflict {
		t.Errorf("what never was: %v", err)
	}
	if b.generation() != loaded {
		t.Error("a refused deletion raised the generation")
	}
	if err := b.remove("p", 2, 0); err != nil { // by a clock that was set back
		t.Fatal(err)
	}
	if _, err := b.store.Get(ctx, "p"); reasonOf(err) != policy.ReasonNotFound || err.Error() != "not-found: The policy was deleted by version 3." {
		t.Errorf("read: %v", err)
	}
	if page, err := b.store.List(ctx, "", 10); err != nil || len(page) != 1 || page[0].ID != "stays" {
		t.Errorf("listed: %+v, %v", page, err)
	}
	page, err := b.store.Versions(ctx, "p", 0, 10)
	if err != nil || len(page) != 3 || page[1].Deleted || !page[2].Deleted || page[2].InstalledAtMicros != epochMicros+second ||
		!page[2].Spec.Equal(page[1].Spec) {
		t.Errorf("its versions: %+v, %v", page, err)
	}
	if version, err := b.store.Version(ctx, "p", 3); err != nil || !version.Deleted {
		t.Errorf("the tombstone: %+v, %v", version, err)
	}
	generation, changed, err := b.store.Load(ctx, loaded)
	if err != nil || generation != loaded+1 || len(changed) != 1 || changed[0].ID != "p" || !changed[0].Deleted {
		t.Errorf("loaded: generation %d, %+v, %v", generation, changed, err)
	}
	got := scalar[string](b, `SELECT string_agg(format('%s %s %s %s %s-%s %s %s %s %s', actor, role, action, policy, version_before, version_after,
		before #>> '{limit,capacity}', after #>> '{limit,capacity}', reason, request_id), '; ') FROM ration.audit WHERE action = 'policy.deleted'`)
	if want := "ann admin policy.deleted p 2-3 20  why r1"; got != want {
		t.Errorf("audit: %s, want %s", got, want)
	}
}

func TestADeletedPolicyComesBackAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	of := b.install("p", 0, shape{capacity: 10}, 0)
	b.expect(session, of, 1, second, 1, 9)
	if err := b.remove("p", 1, second); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		s        shape
		rule     policy.Balances
		pointers []string
	}{
		{shape{capacity: 10}, policy.Keep, []string{"/balances"}},
		{shape{capacity: 20}, policy.Scale, []string{"/balances"}},
		{shape{capacity: 10, durability: policy.Durable}, policy.Reset, []string{"/durability"}},
		{shape{capacity: 10, algorithm: policy.FixedWindow}, policy.Keep, []string{"/limit/algorithm", "/limit/windowSeconds"}},
	} {
		_, err := b.putBy("p", 0, c.s, c.rule, policy.StartNone, second)
		var pointers []string
		if refused, ok := errors.AsType[*policy.Error](err); ok && refused.Reason == policy.ReasonPolicyInvalid {
			for _, fault := range refused.Faults {
				pointers = append(pointers, fault.Pointer)
			}
		}
		if diff := cmp.Diff(c.pointers, pointers); diff != "" {
			t.Errorf("%+v by %s: %v\n%s", c.s, c.rule, err, diff)
		}
	}
	// The version that was deleted is none to replace, nor is its tombstone.
	for _, expected := range []int{1, 2} {
		if _, err := b.putBy("p", expected, shape{capacity: 10}, policy.Reset, policy.StartNone, second); reasonOf(err) != policy.ReasonVersionConflict {
			t.Errorf("after version %d: %v", expected, err)
		}
	}
	back, err := b.putBy("p", 0, shape{capacity: 10}, policy.Reset, policy.StartNone, second)
	if err != nil || back.Version != 3 || back.Number != of.Number || back.Deleted {
		t.Fatalf("came back as %+v, %v", back, err)
	}
	b.expect(session, back, 1, second, 1, 9)
	got := scalar[string](b, "SELECT string_agg(format('%s %s-%s', action, version_before, version_after), '; ' ORDER BY id) FROM ration.audit")
	if want := "policy.created -1; policy.deleted 1-2; policy.created 2-3"; got != want {
		t.Errorf("audit: %s, want %s", got, want)
	}
}

// What was kept before a policy began anew, or was deleted, is shown to nobody
// and cleaned, whatever it holds; and what came after stays.
func TestWhatWasKeptBeforeIsCleanedAndNotShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	counts := []shape{
		{capacity: 10},
		{capacity: 10, durability: policy.Durable},
		{capacity: 10, algorithm: policy.FixedWindow},
		{capacity: 10, algorithm: policy.SlidingWindowCounter, durability: policy.Durable},
		{capacity: 10, algorithm: policy.SlidingWindowLog},
		{capacity: 10, algorithm: policy.SlidingWindowCounter, strict: true, durability: policy.Durable},
	}
	places := []string{"bucket_fast", "bucket_durable", "window_fast", "window_durable", "log_fast", "log_durable"}
	shown := func() int {
		return scalar[int](b, `SELECT (SELECT count(*) FROM ration.bucket_now) + (SELECT count(*) FROM ration.window_now) + (SELECT count(*) FROM ration.log_now)`)
	}
	for i, s := range counts {
		id := places[i]
		b.spends(b.install(id, 0, s, 0), 3)
		other := counts[(i+1)%len(counts)]
		if _, err := b.putBy(id, 1, other, policy.Restart, policy.StartEmpty, second); err != nil {
			t.Fatal(err)
		}
		if got := shown(); got != 0 {
			t.Errorf("%s: %d rows are shown of what is kept no more", id, got)
		}
		of, err := b.putBy(id, 2, s, policy.Restart, policy.StartFull, second)
		if err != nil {
			t.Fatal(err)
		}
		if deleted, err := b.store.Clean(t.Context(), 0, epochMicros+second); err != nil || deleted != 0 {
			t.Errorf("%s: %d rows cleaned, %v, before a sweep has counted them", id, deleted, err)
		}
		b.exec("DELETE FROM ration.sweep") // as if the row had been written behind it
		if deleted, err := b.store.Clean(t.Context(), 0, epochMicros+second); err != nil || deleted != 1 {
			t.Errorf("%s: %d rows cleaned, %v, want the one that is kept no more", id, deleted, err)
		}
		b.spends(of, 3)
		if deleted, err := b.store.Clean(t.Context(), 0, epochMicros+second); err != nil || deleted != 0 || shown() != 1 {
			t.Errorf("%s: %d rows cleaned, %v, %d shown", id, deleted, err, shown())
		}
		if err := b.remove(id, 3, second); err != nil {
			t.Fatal(err)
		}
		if got := shown(); got != 0 {
			t.Errorf("%s: %d rows are shown of a policy that is no more", id, got)
		}
		if deleted, err := b.store.Clean(t.Context(), 0, epochMicros+second); err != nil || deleted != 1 {
			t.Errorf("%s: %d rows cleaned, %v, after its end", id, deleted, err)
		}
	}
}

// spends claims a cost of one key, which has to be allowed.
func (b *bench) spends(of *policy.Installed, cost int64) {
	b.Helper()
	session := b.store.NewSession()
	defer session.Close()
	claims := policy.Claims{Generation: b.generation(), NowMicros: epochMicros + second, Claims: []policy.Claim{
		{Checks: []policy.Check{{Policy: of, Key: keyOf(1), Cost: cost}}},
	}}
	var verdicts policy.Verdicts
	s := subject{session: session}
	if err := s.DecideClaims(b.Context(), &claims, &verdicts); err != nil || !verdicts.Verdicts[0].Allowed {
		b.Fatalf("charge %s: %+v, %v", of.ID, verdicts, err)
	}
}

// A call that read a policy before its state moved to another table inserts
// nothing into the one it read of, and locks nothing there.
func TestRowsAreNotInsertedWhereAPolicyHasLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	of := b.install("p", 0, shape{capacity: 10}, 0)
	for place := 2; place <= 7; place++ {
		locked := scalar[bool](b, `SELECT l.o_cells IS NOT NULL OR l.o_same FROM ration.decide_lock_v1(0, 'wait', '{t}', ARRAY[$1::int], ARRAY[$2::int],
			'{`+key+`}', '{NULL}') AS l`, place, of.Number)
		if locked || b.stored() != "" {
			t.Errorf("a row of place %d: locked %t, stored %s", place, locked, b.stored())
		}
	}
}

// The versions of a restarted policy are told apart by what they keep.
func TestARestartIsStoredWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install("p", 0, shape{capacity: 10}, 0)
	for i, s := range []shape{
		{capacity: 10, algorithm: policy.SlidingWindowCounter, strict: true, seconds: "60", durability: policy.Durable},
		{capacity: 7, algorithm: policy.Concurrency, seconds: "30"},
		{capacity: 3, seconds: "1"},
	} {
		if _, err := b.putBy("p", i+1, s, policy.Restart, policy.StartFull, int64(i)*second); err != nil {
			t.Fatal(err)
		}
		got := scalar[string](b, `SELECT format('%s %s %s %s %s/%s %s %s %s since %s', p.durability, p.algorithm, p.strict, p.span, p.n, p.d, p.capacity,
			p.idle_balance, (p.idle_at - $1) / 1000000, p.since) FROM ration.policy AS p`, epochMicros)
		want := []string{
			"durable sliding_window_counter t 60000000 1/1 10 10 0 since 2",
			"fast concurrency f 30000000 1/1 7 7 1 since 3",
			"fast token_bucket f 0 1/1000000 3 3000000 2 since 4",
		}[i]
		if got != want {
			t.Errorf("version %d: %s, want %s", i+2, got, want)
		}
	}
	page, err := b.store.Versions(t.Context(), "p", 0, 10)
	algorithms := make([]policy.Algorithm, 0, len(page))
	for _, installed := range page {
		algorithms = append(algorithms, installed.Spec.Limit.Algorithm)
	}
	if want := []policy.Algorithm{policy.TokenBucket, policy.SlidingWindowCounter, policy.Concurrency, policy.TokenBucket}; err != nil ||
		!slices.Equal(algorithms, want) {
		t.Errorf("versions of %v, %v", algorithms, err)
	}
}
