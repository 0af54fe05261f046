//go:build unix

package pgstore_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/policy"
)

const (
	// attemptsMax and attemptPause bound the wait for a server that recovers.
	attemptsMax  = 500
	attemptPause = 20 * time.Millisecond
)

// A backend that is killed takes the server's memory with it, and all that
// stood in unlogged tables.
func TestKilledBackend(t *testing.T) {
	t.Parallel()
	db, _ := dbtest.OwnServer(t, nil, dbtest.TestClock)
	b := benchOn(t, db)
	session := b.session()
	fast := b.install("fast", 0, shape{capacity: 10}, 0)
	durable := b.install("durable", 0, shape{capacity: 10, durability: policy.Durable}, 0)
	fastBatch, durableBatch := b.batch(fast, 1), b.batch(durable, 1)
	b.decide(session, fastBatch)
	b.decide(session, durableBatch)
	b.exec("CHECKPOINT") // what is lost was on disk

	b.kill()
	// Until the loss is recorded no call is answered, however often and by whomever it is made.
	for _, session := range []interface {
		Take(ctx context.Context, batch *policy.Batch, answers *policy.Answers) error
	}{session, b.session(), session} {
		var answers policy.Answers
		attempt(t, "a call finds the loss", func() bool {
			err := session.Take(t.Context(), fastBatch, &answers)
			if err == nil {
				t.Fatalf("answered from emptied tables: %+v", answers)
			}
			return faultOf(t, err) == policy.StoreStateLost
		})
	}
	if answers := b.decide(session, durableBatch); answers.Asks[0].Remaining != 8 {
		t.Errorf("%+v: the acknowledged charge of a durable policy is gone", answers)
	}
	// The pool still has connections of the time before, each good for one error.
	attempt(t, "recover", func() bool { _, err := session.Recover(t.Context()); return err == nil })
	if answers := b.decide(session, fastBatch); answers.Asks[0].Remaining != 9 {
		t.Errorf("%+v: want the idle bucket's", answers)
	}
	if n := scalar[int](b, "SELECT count(*) FROM ration.state_loss"); n != 1 {
		t.Errorf("%d losses are recorded, want one", n)
	}
}

// What was acknowledged outlives a crash, but for what keys of fast policies
// have used, and that begins anew.
func TestOutcomesAndSlotsSurviveACrash(t *testing.T) {
	t.Parallel()
	db, _ := dbtest.OwnServer(t, nil, dbtest.TestClock)
	b := benchOn(t, db)
	session := b.session()
	window := shape{capacity: 10, seconds: "3600", algorithm: policy.FixedWindow}
	of := b.install("window", 0, window, 0)
	for version := 1; version < 3; version++ {
		window.capacity++
		of = b.install("window", version, window, 0)
	}
	window.durability = policy.Durable
	durable := b.install("durable", 0, window, 0)
	slots := b.install("slots", 0, shape{capacity: 1, seconds: "3600", algorithm: policy.Concurrency}, 0)
	op := operating("x", check(of, 1, 8), check(durable, 1, 8), check(slots, 1, 1))
	first := b.claim(session, second, op)[0]
	if !first.Allowed || first.Parts[0].Remaining != 4 {
		t.Fatalf("%+v", first)
	}
	b.exec("CHECKPOINT") // what is lost was on disk

	b.kill()
	attempt(t, "a call finds the loss", func() bool {
		_, err := decideClaims(session, b.claims(second, claim(check(of, 1, 1))))
		if err == nil {
			t.Fatal("answered from emptied tables")
		}
		return faultOf(t, err) == policy.StoreStateLost
	})
	attempt(t, "recover", func() bool { _, err := session.Recover(t.Context()); return err == nil })
	first.Status = policy.ClaimReplayed
	if diff := cmp.Diff(first, b.claim(session, 2*second, op)[0]); diff != "" {
		t.Errorf("the operation is not replayed as it was answered: %s", diff)
	}
	if part := b.peek(session, 2*second, of, 1); part.Remaining != 12 || part.Version != 3 {
		t.Errorf("%+v, want version 3 with nothing used", part)
	}
	if part := b.peek(session, 2*second, durable, 1); part.Remaining != 4 {
		t.Errorf("%+v, want what a durable policy was charged", part)
	}
	if part := b.peek(session, 2*second, slots, 1); part.Allowed {
		t.Errorf("%+v, want the slot to be held", part)
	}
	attempt(t, "renew the slot", func() bool {
		expiresAt, renewed, err := b.store.RenewSlotAt(t.Context(), first.Parts[2].Slot.ID, epochMicros+2*second)
		if err == nil && (!renewed || expiresAt != epochMicros+3602*second) {
			t.Errorf("renewed until %d: %t", expiresAt, renewed)
		}
		return err == nil
	})
}

// kill ends a backend of the server without a warning and waits until the
// server has noticed.
func (b *bench) kill() {
	b.Helper()
	victim, witness := b.service(), b.service()
	if _, err := witness.Exec(b.Context(), "SET statement_timeout = 0"); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := witness.Exec(b.Context(), "SELECT pg_sleep(60)")
		ended <- err
	}()
	if err := syscall.Kill(int(victim.PgConn().PID()), syscall.SIGKILL); err != nil {
		b.Fatal(err)
	}
	if err := <-ended; err == nil {
		b.Fatal("the server has not noticed that a backend was killed")
	}
	b.owner.Reset()
	attempt(b, "connect after the crash", func() bool {
		conn, err := pgx.Connect(b.Context(), b.db.OwnerURL())
		if err == nil {
			_ = conn.Close(b.Context()) // it has shown what it was for
		}
		return err == nil
	})
}

// attempt repeats what fails while a server recovers.
func attempt(tb testing.TB, what string, try func() bool) {
	tb.Helper()
	for range attemptsMax {
		if try() {
			return
		}
		select {
		case <-tb.Context().Done():
		case <-time.After(attemptPause):
		}
	}
	tb.Fatalf("%s: not after %d attempts", what, attemptsMax)
}
