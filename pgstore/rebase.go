package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// rebaseRows is what one call examines: few enough that it holds rows for some
// ten milliseconds at most, also where all of them are ahead.
const rebaseRows = 2000

// rebasePiecesMax bounds the calls of one [Store.Rebase].
const rebasePiecesMax = 100

// Rebase sets to now what is ahead of the clock, as a clock that stepped
// forward and back leaves it. It works from a place on and examines a bounded
// part of what is stored; next is nil when all of it is done. Each piece that
// changes anything has its audit row in the same transaction.
func (s *Store) Rebase(ctx context.Context, rebase policy.Rebase) (rebased int, next *policy.RebasePlace, err error) {
	return s.rebaseAt(ctx, rebase, 0)
}

// rebaseAt is Rebase at an instant of a test clock; 0 in production.
func (s *Store) rebaseAt(ctx context.Context, rebase policy.Rebase, nowMicros int64) (rebased int, next *policy.RebasePlace, err error) {
	at := rebase.From
	for range rebasePiecesMax {
		var n int
		var last *policy.Key
		err := s.control(ctx, "set back what is ahead of the clock", func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, `
				SELECT r.o_rebased, r.o_last FROM ration.rebase_v1($1, $2, $3, $4, $5, $6, $7, $8, nullif($9::bigint, 0)) AS r`,
				at.Table, shard, at.After, rebaseRows, rebase.Actor, rebase.Role.String(), rebase.Reason, rebase.RequestID, nowMicros).
				Scan(&n, &last)
		})
		if err != nil {
			return rebased, &at, err
		}
		rebased += n
		switch {
		case last != nil:
			at.After = *last
		case at.Table < policy.RebaseTableLast:
			at = policy.RebasePlace{Table: at.Table + 1}
		default:
			return rebased, nil, nil
		}
	}
	return rebased, &at, nil
}
