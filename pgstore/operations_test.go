package pgstore_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// operationKey is what operating asks under.
func operationKey(operation string) policy.Key { return policy.OperationKeyOf("", "", operation) }

// settle settles an operation at an instant after the epoch; an error ends the
// test.
func (b *bench) settle(atMicros int64, operation string, actual int64) policy.Settled {
	b.Helper()
	settled, err := b.store.SettleAt(b.Context(), policy.Settlement{Operation: operationKey(operation), ActualCost: actual}, epochMicros+atMicros)
	if err != nil {
		b.Fatal(err)
	}
	return settled
}

// begin starts a transaction on a session's connection, so that what it
// decides from now on waits for its end.
func (b *bench) begin(session *pgstore.Session) (end func(how string)) {
	b.Helper()
	if err := session.Connect(b.Context()); err != nil {
		b.Fatal(err)
	}
	run := func(sql string) {
		b.Helper()
		if _, err := session.Conn().Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	run("BEGIN")
	return run
}

// One operation asked twenty times at once by two instances is charged once,
// and everybody who is answered gets the same.
func TestParallelRepetitionsAreChargedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	of := b.install("p", 0, shape{capacity: 10}, 0)
	c := b.crew(10)
	for round := range 5 {
		op := operating(fmt.Sprint(round), check(of, uint64(round), 1))
		var decided, replayed atomic.Int64
		c.each(20, func(session *pgstore.Session, _ int) error {
			for {
				verdicts, err := decideClaims(session, b.claims(second, op))
				if err != nil {
					return err
				}
				switch verdict := verdicts[0]; verdict.Status {
				case policy.ClaimInProgress:
					continue
				case policy.ClaimDecided:
					decided.Add(1)
				case policy.ClaimReplayed:
					replayed.Add(1)
				default:
					return fmt.Errorf("%+v", verdict)
				}
				if v := verdicts[0]; !v.Allowed || v.AtMicros != epochMicros+second || v.Parts[0].Remaining != 9 || v.Parts[0].Cost != 1 {
					return fmt.Errorf("%+v", v)
				}
				return nil
			}
		})
		if decided.Load() != 1 || replayed.Load() != 19 {
			t.Errorf("decided %d times and replayed %d times", decided.Load(), replayed.Load())
		}
		if left := b.peek(c.sessions[0], second, of, uint64(round)).Remaining; left != 9 {
			t.Errorf("%d left, want 9", left)
		}
	}
}

// While the first call of an operation has not ended, a repetition is told so
// at once, and its neighbours in the call are decided as ever.
func TestARepetitionDoesNotWaitForTheFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	of := b.install("p", 0, shape{capacity: 10}, 0)
	winner, other := b.session(), b.session()
	run := b.begin(winner)
	first := b.claim(winner, second, operating("x", check(of, 1, 1)))

	both := []policy.Claim{operating("x", check(of, 1, 1)), claim(check(of, 2, 1))}
	verdicts := b.claim(other, second, both...)
	if verdicts[0].Status != policy.ClaimInProgress || verdicts[1].Status != policy.ClaimDecided || !verdicts[1].Allowed {
		t.Errorf("while the first is under way: %+v", verdicts)
	}
	if _, err := b.store.FindOperation(t.Context(), operationKey("x")); codeOf(err) != policy.CodeNotFound {
		t.Errorf("it is found before it has ended: %v", err)
	}
	run("COMMIT")
	verdicts = b.claim(other, 2*second, both...)
	want := first[0]
	want.Status = policy.ClaimReplayed
	if diff := cmp.Diff(want, verdicts[0]); diff != "" {
		t.Errorf("the replay is not the first answer: %s", diff)
	}

	// A first that fails leaves the id free.
	run = b.begin(winner)
	b.claim(winner, second, operating("y", check(of, 1, 1)))
	run("ROLLBACK")
	if verdict := b.claim(other, second, operating("y", check(of, 1, 1)))[0]; verdict.Status != policy.ClaimDecided || verdict.Parts[0].Remaining != 8 {
		t.Errorf("after the first has failed: %+v", verdict)
	}
}

// codeOf is the code of an error of the store's.
func codeOf(err error) policy.Code {
	if known, ok := errors.AsType[*policy.Error](err); ok {
		return known.Code
	}
	return policy.CodeInternal
}

// An outcome is found as it was answered, under the versions that decided.
func TestFindOperation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	bucket := b.install("bucket", 0, shape{capacity: 10}, 0)
	slots := b.install("slots", 0, shape{capacity: 2, seconds: "60", algorithm: policy.Concurrency}, 0)
	shadow := b.install("shadow", 0, shape{capacity: 1, algorithm: policy.FixedWindow, shadow: true}, 0)
	op := operating("x", check(bucket, 1, 4), check(shadow, 1, 4), check(slots, 1, 1))
	verdict := b.claim(session, second, op)[0]
	b.install("bucket", 1, shape{capacity: 20}, second)

	got, err := b.store.FindOperation(t.Context(), operationKey("x"))
	if err != nil {
		t.Fatal(err)
	}
	verdict.Status = policy.ClaimReplayed
	want, err := verdict.Decision("", op.Checks, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(x, y *policy.Installed) bool { return x.ID == y.ID && x.Version == y.Version })); diff != "" {
		t.Error(diff)
	}
	if !got.Allowed || got.Policy.ID != "bucket" || got.Policy.Version != 1 || got.Detail.Parts[2].Slot.ExpiresAtMicros != epochMicros+61*second {
		t.Errorf("%+v", got)
	}
	if _, err := b.store.FindOperation(t.Context(), operationKey("y")); codeOf(err) != policy.CodeNotFound {
		t.Errorf("an unknown operation: %v", err)
	}
	find, err := b.store.Installed(t.Context(), []policy.Part{{Policy: bucket.Number, Version: 1}, {Policy: bucket.Number, Version: 3}})
	if err != nil {
		t.Fatal(err)
	}
	if installed, err := find(bucket.Number, 1); err != nil || installed.Spec.Limit.Capacity != 10 {
		t.Errorf("a version that is not in force: %+v, %v", installed, err)
	}
	if _, err := find(bucket.Number, 3); codeOf(err) != policy.CodeNotFound {
		t.Errorf("a version that there is not: %v", err)
	}
}

// A refund gives back what was charged, once, however often it is asked for.
func TestRefunds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	of := b.install("p", 0, shape{capacity: 10}, 0)
	holds := func(key uint64, want int64) {
		t.Helper()
		if left := b.peek(session, second, of, key).Remaining; left != want {
			t.Errorf("key %d holds %d, want %d", key, left, want)
		}
	}
	b.claim(session, second, operating("x", check(of, 1, 3)))
	holds(1, 7)
	want := policy.Settled{AtMicros: epochMicros + second, Parts: []policy.SettledPart{{Policy: "p", Version: 1, Charged: 3, Applied: true}}}
	if diff := cmp.Diff(want, b.settle(second, "x", 0)); diff != "" {
		t.Error(diff)
	}
	holds(1, 10)
	want.Status = policy.SettleReplayed
	if diff := cmp.Diff(want, b.settle(2*second, "x", 0)); diff != "" {
		t.Errorf("asked for again: %s", diff)
	}
	holds(1, 10)
	for name, c := range map[string]struct {
		settled policy.Settled
		status  policy.SettleStatus
	}{
		"by another cost": {b.settle(second, "x", 100), policy.SettleConflict},
		"unknown":         {b.settle(second, "nobody's", 0), policy.SettleUnknown},
	} {
		if c.settled.Status != c.status || len(c.settled.Parts) != 0 {
			t.Errorf("%s: %+v", name, c.settled)
		}
	}
	b.claim(session, second, operating("denied", check(of, 1, 11)))
	if settled := b.settle(second, "denied", 0); settled.Status != policy.SettleUnknown {
		t.Errorf("denied: %+v", settled)
	}
	holds(1, 10)

	// What comes back to a drained key can be spent.
	b.claim(session, second, operating("drained", check(of, 3, 1)), claim(check(of, 3, 9)))
	b.settle(second, "drained", 0)
	verdicts := b.claim(session, second, claim(check(of, 3, 1)), claim(check(of, 3, 1)))
	if !verdicts[0].Allowed || verdicts[1].Allowed {
		t.Errorf("after a refund of one: %+v", verdicts)
	}
	// More than was charged takes the key below nothing, as far as a key can owe.
	b.claim(session, second, operating("dear", check(of, 4, 3)))
	if settled := b.settle(second, "dear", 50); !settled.Parts[0].Applied || !settled.Parts[0].Clamped {
		t.Errorf("%+v", settled)
	}
	if part := b.peek(session, second, of, 4); part.Remaining != 0 || part.RetryAfterMicros != 11*year {
		t.Errorf("%+v", part)
	}
}

// Of twenty refunds at once one gives back, and the others are told what it
// did.
func TestParallelRefundsCreditOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	of := b.install("p", 0, shape{capacity: 10}, 0)
	b.claim(session, second, operating("parallel", check(of, 2, 3)))
	var done atomic.Int64
	b.crew(8).each(20, func(*pgstore.Session, int) error {
		settled, err := b.store.SettleAt(t.Context(), policy.Settlement{Operation: operationKey("parallel")}, epochMicros+second)
		if err == nil && settled.Status == policy.SettleDone {
			done.Add(1)
		}
		if err == nil && settled.Status > policy.SettleReplayed {
			err = fmt.Errorf("%+v", settled)
		}
		return err
	})
	if done.Load() != 1 {
		t.Errorf("%d of 20 refunds at once were the first", done.Load())
	}
	if left := b.peek(session, second, of, 2).Remaining; left != 10 {
		t.Errorf("%d left, want 10", left)
	}
}

// However many settlements wait for a row that somebody holds, others are made
// and policies are changed meanwhile. Who has waited for a call's bound is told
// that nothing was done.
func TestSettlementsThatWaitKeepNobodyWaiting(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	of := b.install("p", 0, shape{capacity: 10}, 0)
	b.claim(b.session(), second, operating("x", check(of, 1, 3)), operating("y", check(of, 2, 3)))
	holder := b.connect(b.db.OwnerURL())
	if _, err := holder.Exec(t.Context(), fmt.Sprintf("BEGIN; SELECT FROM ration.operation WHERE key = '%x' FOR UPDATE", operationKey("x"))); err != nil {
		t.Fatal(err)
	}
	settlement := policy.Settlement{Operation: operationKey("x"), ActualCost: 1}
	var waiting sync.WaitGroup
	for range 20 {
		waiting.Go(func() {
			if settled, err := b.store.SettleAt(t.Context(), settlement, epochMicros+second); err != nil || settled.Status > policy.SettleReplayed {
				t.Errorf("%+v, %v", settled, err)
			}
		})
	}
	attempt(t, "settlements wait for the row", func() bool {
		return scalar[int](b, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") > 0
	})
	if settled := b.settle(second, "y", 1); settled.Status != policy.SettleDone {
		t.Errorf("meanwhile: %+v", settled)
	}
	b.install("p", 1, shape{capacity: 20}, second)

	hasty, err := pgstore.Open(t.Context(), pgstore.Config{URL: b.db.ServiceURL(), CallTimeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer hasty.Close()
	if _, err := hasty.SettleAt(t.Context(), settlement, epochMicros+second); codeOf(err) != policy.CodeUnavailable || faultOf(t, err) != policy.StoreHeld {
		t.Errorf("behind a row that is held: %v", err)
	}
	if _, err := holder.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
}

// What waits for one row, and holds another that decisions want, gives both up
// before a decision does.
func TestWaitsOfSettlementsAndSlotsAreShort(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	fast := b.install("fast", 0, shape{capacity: 10}, 0)
	durable := b.install("durable", 0, shape{capacity: 10, durability: policy.Durable}, 0)
	slots := b.install("slots", 0, shape{capacity: 2, seconds: "60", algorithm: policy.Concurrency}, 0)
	verdicts := b.claim(session, second, operating("x", check(fast, 1, 3), check(durable, 1, 3)), claim(check(slots, 1, 1)))
	slot := fmt.Sprintf("'%s'", verdicts[1].Parts[0].Slot.ID)

	conn := b.service() // the most patient there is
	if _, err := conn.Exec(t.Context(), "SET statement_timeout = 0; SET lock_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	holder := b.connect(b.db.OwnerURL())
	for _, c := range []struct{ call, held string }{
		{fmt.Sprintf("settle_v1(0, '%x', 1, ", operationKey("x")), "bucket_durable"},
		{"renew_slot_v1(0, " + slot + ", ", "slot"},
		{"release_slot_v1(0, " + slot + ", ", "slot"},
	} {
		call := fmt.Sprintf("SELECT ration.%s%d)", c.call, epochMicros+second)
		if _, err := holder.Exec(t.Context(), "BEGIN; SELECT FROM ration."+c.held+" FOR UPDATE"); err != nil {
			t.Fatal(err)
		}
		refused(b, conn, "55P03", c.held+" is held", call)
		if _, err := holder.Exec(t.Context(), "COMMIT"); err != nil {
			t.Fatal(err)
		}
		may(b, conn, "when nobody holds it any more", call)
	}
}
