package pgstore_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// callTimeout is long: tests share few cores, and none of them is about it.
const callTimeout = 10 * time.Second

// open opens a store on a database.
func open(tb testing.TB, db *dbtest.DB) *pgstore.Store {
	tb.Helper()
	store, err := pgstore.Open(context.Background(), pgstore.Config{URL: db.ServiceURL(), CallTimeout: callTimeout})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(store.Close)
	return store
}

// subject is the store as storetest plays with it: every batch goes down the
// fast path first and what that leaves down the settling one, as in a lane.
type subject struct {
	db      *dbtest.DB
	store   *pgstore.Store
	session *pgstore.Session
	locks   bool // the next claims lock their rows at once
}

func newSubject(tb testing.TB) *subject {
	tb.Helper()
	db := dbtest.New(tb, dbtest.TestClock)
	// What is decided is the point here, not how soon: no call may run into its bound on a busy machine.
	if _, err := db.Owner().Exec(context.Background(), "ALTER ROLE ration_service IN DATABASE "+
		pgx.Identifier{db.Name}.Sanitize()+" SET statement_timeout = '10s'"); err != nil {
		tb.Fatal(err)
	}
	store := open(tb, db)
	s := &subject{db: db, store: store, session: store.NewSession()}
	tb.Cleanup(s.session.Close)
	return s
}

func (s *subject) Install(
	ctx context.Context, id string, change *policy.Change, expected int, nowMicros int64,
) (*policy.Installed, error) {
	installed, _, err := s.store.PutAt(ctx, policy.Put{ID: id, Expected: expected, Change: change, Author: policy.Author{Actor: "test"}}, nowMicros)
	return installed, err
}

func (s *subject) Delete(ctx context.Context, id string, expected int, nowMicros int64) error {
	return s.store.DeleteAt(ctx, policy.Removal{ID: id, Expected: expected, Author: policy.Author{Actor: "test"}}, nowMicros)
}

func (s *subject) Generation(ctx context.Context) (int64, error) {
	generation, _, err := s.store.Load(ctx, 0)
	return generation, err
}

func (s *subject) Policies(ctx context.Context) ([]*policy.Installed, error) {
	_, installed, err := s.store.Load(ctx, 0)
	return slices.DeleteFunc(installed, func(p *policy.Installed) bool { return p.Deleted }), err
}

// Clean sweeps first: what a sweep is to settle is not cleaned. A sweep begins a
// second after its change.
func (s *subject) Clean(ctx context.Context, nowMicros int64) (deleted int, err error) {
	for more := true; more; {
		if _, more, err = s.store.Sweep(ctx, 1, nowMicros+second); err != nil {
			return 0, err
		}
	}
	return s.store.Clean(ctx, 0, nowMicros)
}

// Lose empties what a crash empties.
func (s *subject) Lose(ctx context.Context, nowMicros int64) error {
	_, err := s.db.Owner().Exec(ctx, "TRUNCATE ration.incarnation_marker, ration.bucket_fast, ration.window_fast, ration.log_fast")
	if err == nil {
		_, err = s.db.Owner().Exec(ctx, "SELECT ration.recover_v1($1)", nowMicros)
	}
	return err
}

func (s *subject) Settle(ctx context.Context, settlement policy.Settlement, nowMicros int64) (policy.Settled, error) {
	return s.store.SettleAt(ctx, settlement, nowMicros)
}

func (s *subject) ReleaseSlot(ctx context.Context, id policy.SlotID, nowMicros int64) (released bool, err error) {
	return s.store.ReleaseSlotAt(ctx, id, nowMicros)
}

func (s *subject) RenewSlot(ctx context.Context, id policy.SlotID, nowMicros int64) (expiresAtMicros int64, renewed bool, err error) {
	return s.store.RenewSlotAt(ctx, id, nowMicros)
}

// Decide asks at most three calls, as a lane does.
func (s *subject) Decide(ctx context.Context, batch *policy.Batch, answers *policy.Answers) error {
	if err := s.session.Take(ctx, batch, answers); err != nil || answers.Stale {
		return err
	}
	for range 2 {
		rest, places := undecided(batch, answers)
		if len(rest.Asks) == 0 {
			return nil
		}
		var settled policy.Answers
		if err := s.session.TakeNew(ctx, policy.HoldWait, &rest, &settled); err != nil || settled.Stale {
			answers.Stale = settled.Stale
			return err
		}
		for i, place := range places {
			answers.Asks[place] = settled.Asks[i]
		}
	}
	if rest, _ := undecided(batch, answers); len(rest.Asks) > 0 {
		return fmt.Errorf("%d asks are undecided after three calls", len(rest.Asks))
	}
	return nil
}

// undecided gives the asks that an answer left open, with their places.
func undecided(batch *policy.Batch, answers *policy.Answers) (rest policy.Batch, places []int) {
	rest = *batch
	rest.Asks = nil
	for i, answer := range answers.Asks {
		if answer.Status == policy.Again {
			rest.Asks = append(rest.Asks, batch.Asks[i])
			places = append(places, i)
		}
	}
	return rest, places
}

// DecideClaims asks at most three calls, as a lane does; every other time as
// one that has met rivals.
func (s *subject) DecideClaims(ctx context.Context, claims *policy.Claims, verdicts *policy.Verdicts) error {
	hold := policy.HoldTry
	if s.locks {
		hold = policy.HoldWait
	}
	s.locks = !s.locks
	if err := s.session.Decide(ctx, hold, claims, verdicts); err != nil || verdicts.Stale {
		return err
	}
	for range 2 {
		rest, places := unclaimed(claims, verdicts)
		if len(rest.Claims) == 0 {
			return nil
		}
		var later policy.Verdicts
		if err := s.session.Decide(ctx, policy.HoldWait, &rest, &later); err != nil || later.Stale {
			verdicts.Stale = later.Stale
			return err
		}
		for i, place := range places {
			verdicts.Verdicts[place] = later.Verdicts[i]
		}
	}
	if rest, _ := unclaimed(claims, verdicts); len(rest.Claims) > 0 {
		return fmt.Errorf("%d claims are undecided after three calls", len(rest.Claims))
	}
	return nil
}

// unclaimed gives the claims that a call left open, with their places.
func unclaimed(claims *policy.Claims, verdicts *policy.Verdicts) (rest policy.Claims, places []int) {
	rest = *claims
	rest.Claims = nil
	for i := range verdicts.Verdicts {
		if verdicts.Verdicts[i].Status == policy.ClaimAgain {
			rest.Claims = append(rest.Claims, claims.Claims[i])
			places = append(places, i)
		}
	}
	return rest, places
}
