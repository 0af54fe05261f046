package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// lossesMax is how many losses of the fast state a store tells of, the newest.
const lossesMax = 20

// State tells of the store itself, of the database's name in any case.
func (s *Store) State(ctx context.Context) (state policy.StoreState, err error) {
	state.Database = s.config.Database
	err = s.control(ctx, "read the state of the store", func(ctx context.Context, tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			SELECT current_setting('server_version'), format('%s.%s', v.major, v.minor), pg_is_in_recovery(), s.generation, s.incarnation::text
			FROM ration.schema_version AS v, ration.policy_set AS s`).
			Scan(&state.ServerVersion, &state.Schema, &state.InRecovery, &state.Generation, &state.Incarnation)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			SELECT l.found_at, l.policies_idle, l.policies_empty FROM ration.state_loss AS l ORDER BY l.found_at DESC LIMIT $1`, lossesMax)
		if err != nil {
			return err
		}
		state.Losses, err = pgx.CollectRows(rows, pgx.RowToStructByPos[policy.StateLoss])
		return err
	})
	return state, err
}
