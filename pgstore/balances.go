package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// countBalancesMax bounds for how long the balances of a policy are counted,
// well within the bound of such work: a server at rest examines a million rows
// meanwhile.
const countBalancesMax = controlTimeout * 3 / 5

// countBalances says what a change would do to the balances that the keys of a
// policy have now, counting for so long at most. Nobody waits for it. The
// instant is nowMicros on a test clock, 0 in production.
func (s *Store) countBalances(
	ctx context.Context, id string, change *policy.Change, longest time.Duration, nowMicros int64,
) (policy.DryBalances, error) {
	var counted policy.DryBalances
	err := s.control(ctx, "count balances", func(ctx context.Context, tx pgx.Tx) error {
		limit := &change.Spec.Limit
		return tx.QueryRow(ctx, `
			SELECT c.o_live, c.o_clamped, c.o_denied, c.o_at_least
			FROM ration.dry_run_v1($1, $2, $3::json, $4, $5, $6, nullif($7, ''), $8, nullif($9::bigint, 0)) AS c`,
			shard, id, string(change.Spec.JSON()), storedRate(limit).D, limit.Capacity, change.Balances.String(), change.Start.String(),
			longest.Microseconds(), nowMicros).Scan(&counted.Live, &counted.Clamped, &counted.Denied, &counted.AtLeast)
	})
	return counted, err
}
