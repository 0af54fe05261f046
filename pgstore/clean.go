package pgstore

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// cleanRows is what one call examines: few enough that it holds rows for
// less than 5 ms.
const cleanRows = 500

// cleanPause is between two calls of a round, so that cleaning takes a small
// part of the database's time however many rows there are.
const cleanPause = 20 * time.Millisecond

// cleanRoundPause is between two rounds over both tables.
const cleanRoundPause = time.Minute

// Clean deletes, in one round over both tables, the buckets that hold exactly
// what an idle bucket holds: no answer changes. pause is between two calls.
// The instant is nowMicros on a test clock, 0 in production.
func (s *Store) Clean(ctx context.Context, pause time.Duration, nowMicros int64) (deleted int, err error) {
	for _, durability := range [...]policy.Durability{policy.Fast, policy.Durable} {
		var last *string
		for {
			var n int
			err := s.control(ctx, "clean", func(ctx context.Context, tx pgx.Tx) error {
				return tx.QueryRow(ctx, `
					SELECT c.o_deleted, c.o_last::text
					FROM ration.clean_v1($1, 0, $2::uuid, $3, nullif($4::bigint, 0)) AS c`,
					durability == policy.Durable, last, cleanRows, nowMicros).Scan(&n, &last)
			})
			if err != nil {
				return deleted, err
			}
			deleted += n
			if last == nil {
				break
			}
			if !rest(ctx, pause) {
				return deleted, ctx.Err()
			}
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
			log.WarnContext(ctx, "cleaning idle buckets broke off", "error", err)
		case deleted > 0:
			log.DebugContext(ctx, "cleaned idle buckets", "deleted", deleted)
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
