package pgstore

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// sweepRows is what one piece of a sweep examines: few enough that it holds
// rows for less than 5 ms.
const sweepRows = 100

// sweepShare says that sweeping takes one part in so many of the time of one
// connection, however many instances there are: a busy database is swept more
// slowly.
const sweepShare = 5

// sweepPause is between two looks whether there is something to sweep.
const sweepPause = time.Second

// Sweep does one piece of what policy changes have left to be settled; more is
// false when there was nothing to do, or another instance is doing it. share
// says that one part in so many of the time may go into it: rest is how long
// the next piece has to wait for that. The instant is nowMicros on a test
// clock, 0 in production.
func (s *Store) Sweep(ctx context.Context, share int, nowMicros int64) (rest time.Duration, more bool, err error) {
	var micros *int64
	err = s.control(ctx, "sweep", func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT ration.sweep_v1($1, $2, $3, nullif($4::bigint, 0))", shard, sweepRows, share, nowMicros).Scan(&micros)
	})
	if err != nil || micros == nil {
		return 0, false, err
	}
	return time.Duration(*micros) * time.Microsecond, true, nil
}

// RunSweeper sweeps until ctx ends, which is no error. Every instance may: one
// of them is at it, and when it ends another goes on from where it was.
func (s *Store) RunSweeper(ctx context.Context, log *slog.Logger) error {
	for pause := sweepPause; rest(ctx, pause); {
		next, more, err := s.Sweep(ctx, sweepShare, 0)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			log.WarnContext(ctx, "sweeping broke off", "error", err)
			pause = sweepPause
		case more:
			pause = next
		default:
			pause = sweepPause
		}
	}
	return nil
}
