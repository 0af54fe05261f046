package pgstore_test

import (
	"testing"

	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// lose empties what a crash empties.
func (b *bench) lose() {
	b.Helper()
	b.exec("TRUNCATE ration.incarnation_marker, ration.bucket_fast")
}

// recover calls recover_v1 on eight sessions at once and says how many found
// the loss.
func (b *bench) recover(atMicros int64) (found int) {
	b.Helper()
	const sessions = 8
	answers := make(chan bool, sessions)
	start := make(chan struct{})
	for range sessions {
		conn := b.service()
		go func() {
			<-start
			var first bool
			if err := conn.QueryRow(b.Context(), "SELECT ration.recover_v1($1)", epochMicros+atMicros).Scan(&first); err != nil {
				b.Error(err)
			}
			answers <- first
		}()
	}
	close(start)
	for range sessions {
		if <-answers {
			found++
		}
	}
	return found
}

// expect decides one ask of one token and compares what was admitted and left.
func (b *bench) expect(session *pgstore.Session, of *policy.Installed, number uint64, atMicros int64, admitted int32, remaining int64) {
	b.Helper()
	batch := b.batch(of, number)
	batch.NowMicros = epochMicros + atMicros
	if got := b.decide(session, batch).Asks[0]; got.Admitted != admitted || got.Remaining != remaining {
		b.Errorf("%s, key %d at %d µs: %+v, want %d admitted and %d left", of.ID, number, atMicros, got, admitted, remaining)
	}
}

func TestLossOfFastState(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	perSecond := shape{capacity: 10, seconds: "1"}
	idle := b.install("idle", 0, perSecond, 0)
	perSecond.afterLoss = policy.LossEmpty
	empty := b.install("empty", 0, perSecond, 0)
	durable := b.install("durable", 0, shape{capacity: 10, durability: policy.Durable}, 0)
	for _, of := range []*policy.Installed{idle, empty, durable} {
		b.expect(session, of, 1, second, 1, 9)
	}
	lost := scalar[string](b, "SELECT incarnation::text FROM ration.policy_set")
	b.lose()

	// Nothing is answered from the emptied tables, not even a peek.
	var answers policy.Answers
	for _, of := range []*policy.Installed{idle, empty} {
		batch := b.batch(of, 1)
		batch.Asks[0].Count = 0
		if err := session.Take(t.Context(), batch, &answers); err == nil || faultOf(t, err) != policy.StoreStateLost {
			t.Errorf("take after the loss: %v", err)
		}
		if err := session.TakeNew(t.Context(), policy.HoldWait, batch, &answers); err == nil || faultOf(t, err) != policy.StoreStateLost {
			t.Errorf("take new after the loss: %v", err)
		}
	}
	b.expect(session, durable, 1, 2*second, 1, 8)

	if found := b.recover(100 * second); found != 1 {
		t.Errorf("%d of eight sessions found the loss, want one", found)
	}
	losses := scalar[string](b, `SELECT string_agg(format('%s idle, %s empty, lost %s, new %s', policies_idle, policies_empty,
			lost_incarnation = $1::uuid, new_incarnation = (SELECT incarnation FROM ration.policy_set)
				AND new_incarnation = (SELECT incarnation FROM ration.incarnation_marker) AND new_incarnation <> $1::uuid), '; ')
		FROM ration.state_loss WHERE found_at = $2`, lost, epochMicros+100*second)
	if losses != "1 idle, 1 empty, lost t, new t" {
		t.Errorf("recorded: %s", losses)
	}
	b.expect(session, idle, 1, 100*second, 1, 9)
	b.expect(session, empty, 1, 100*second, 0, 0)
	b.expect(session, empty, 1, 103*second, 1, 2)
	b.expect(session, empty, 2, 103*second, 1, 2) // a key that was never seen
	b.expect(session, durable, 1, 103*second, 1, 7)

	// The empty idle bucket goes through changes, and through the next loss, as any other.
	perSecond.capacity = 20
	empty = b.install("empty", 1, perSecond, 104*second)
	b.expect(session, empty, 3, 106*second, 1, 5)
	b.lose()
	if found := b.recover(200 * second); found != 1 {
		t.Errorf("%d of eight sessions found the second loss, want one", found)
	}
	b.expect(session, empty, 3, 201*second, 1, 0)
	if n := scalar[int](b, "SELECT count(*) FROM ration.state_loss"); n != 2 {
		t.Errorf("%d losses are recorded, want 2", n)
	}
}

func TestRecoverWithoutLoss(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	of := b.install("idle", 0, shape{capacity: 10}, 0)
	b.expect(session, of, 1, second, 1, 9)
	if found := b.recover(second); found != 0 {
		t.Errorf("%d sessions found a loss that was none", found)
	}
	if found, err := session.Recover(t.Context()); found || err != nil {
		t.Errorf("found %t, %v", found, err)
	}
	if n := scalar[int](b, "SELECT count(*) FROM ration.state_loss"); n != 0 {
		t.Errorf("%d losses are recorded", n)
	}
	b.expect(session, of, 1, second, 1, 8)
}

// Tables that were copied from another life are no state of ours.
func TestForeignIncarnationIsALoss(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	of := b.install("idle", 0, shape{capacity: 10}, 0)
	b.expect(session, of, 1, second, 1, 9)
	b.exec("UPDATE ration.incarnation_marker SET incarnation = gen_random_uuid()")
	if _, err := through(session, b.batch(of, 1)); err == nil || faultOf(t, err) != policy.StoreStateLost {
		t.Fatalf("a call on another incarnation: %v", err)
	}
	if found := b.recover(second); found != 1 {
		t.Errorf("%d sessions found the loss", found)
	}
	b.expect(session, of, 1, second, 1, 9)
}
