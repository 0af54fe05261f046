package pgstore

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// cleanRows is what one call examines: few enough that it holds rows for
// less than 5 ms.
const cleanRows = 500

// cleanPause is between two calls of a round, so that cleaning takes a small
// part of the database's time however many rows there are.
const cleanPause = 20 * time.Millisecond

// cleanRoundPause is between two rounds over all tables.
const cleanRoundPause = time.Minute

// cleanedByKey are the functions that walk through a table in stretches, each
// from behind the key that the one before ended at, with their arguments up to
// the shard.
var cleanedByKey = [...]string{
	"clean_v1(false, $1", "clean_v1(true, $1",
	"clean_windows_v1(false, $1", "clean_windows_v1(true, $1",
	"clean_logs_v1(false, $1", "clean_logs_v1(true, $1",
	"clean_slots_v1($1", "clean_slot_parents_v1($1", // slots first: a parent without any goes in the same round
}

// cleanedByAge are the functions that delete what is kept for a time, with
// their arguments up to the instant, and how much a call deletes at least that
// is to be made again.
var cleanedByAge = [...]struct {
	call string
	full int
}{
	{fmt.Sprintf("clean_operations_v1(%d, %d, ", shard, cleanRows), cleanRows},
	{"clean_instances_v1(", 1},
	{"clean_shadow_v1(", 1},
}

// Clean deletes, in one round over all tables, what no answer changes without:
// state that is like an absent key's, slots that have expired, outcomes of
// operation ids whose retention is over, instances that are lost for long, and
// old reports on shadow policies. pause is between two calls. The instant is
// nowMicros on a test clock, 0 in production.
func (s *Store) Clean(ctx context.Context, pause time.Duration, nowMicros int64) (deleted int, err error) {
	for _, function := range cleanedByKey {
		var last *string
		n, err := s.cleanOn(ctx, pause, func(ctx context.Context, tx pgx.Tx) (n int, more bool, err error) {
			err = tx.QueryRow(ctx, "SELECT c.o_deleted, c.o_last::text FROM ration."+function+", $2::uuid, $3, nullif($4::bigint, 0)) AS c",
				shard, last, cleanRows, nowMicros).Scan(&n, &last)
			return n, last != nil, err
		})
		if deleted += n; err != nil {
			return deleted, err
		}
	}
	for _, function := range cleanedByAge {
		n, err := s.cleanOn(ctx, pause, func(ctx context.Context, tx pgx.Tx) (n int, more bool, err error) {
			err = tx.QueryRow(ctx, "SELECT ration."+function.call+"nullif($1::bigint, 0))", nowMicros).Scan(&n)
			return n, n >= function.full, err
		})
		if deleted += n; err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// cleanOn makes calls, each in a transaction of its own, as long as there is
// more to do.
func (s *Store) cleanOn(
	ctx context.Context, pause time.Duration, call func(context.Context, pgx.Tx) (n int, more bool, err error),
) (deleted int, err error) {
	for more := true; more; {
		var n int
		err := s.control(ctx, "clean", func(ctx context.Context, tx pgx.Tx) (err error) {
			n, more, err = call(ctx, tx)
			return err
		})
		if err != nil {
			return deleted, err
		}
		deleted += n
		if more && !rest(ctx, pause) {
			return deleted, ctx.Err()
		}
	}
	return deleted, nil
}

// RunCleaner cleans round after round until ctx ends, which is no error.
// Every instance may: they leave each other's rows alone.
func (s *Store) RunCleaner(ctx context.Context, log *slog.Logger) error {
	for rest(ctx, cleanRoundPause) {
		deleted, err := s.Clean(ctx, cleanPause, 0)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			log.WarnContext(ctx, "cleaning broke off", "error", err)
		case deleted > 0:
			log.DebugContext(ctx, "cleaned", "deleted", deleted)
		}
	}
	return nil
}

// rest waits and says whether ctx is still alive.
func rest(ctx context.Context, pause time.Duration) bool {
	if pause <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
