package pgstore

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// expiryPause is between two looks for what is over.
const expiryPause = time.Second

// ThrowKillSwitch makes the enforced policies of a prefix shadows for a while,
// with its audit row in one transaction. policies says how many there are, the
// generation with which they are shadows.
func (s *Store) ThrowKillSwitch(ctx context.Context, throw policy.KillSwitchThrow) (lies *policy.KillSwitch, policies int, generation int64, err error) {
	err = s.control(ctx, "throw a kill switch", func(ctx context.Context, tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			SELECT r.o_policies, r.o_generation FROM ration.put_kill_switch_v1($1, $2, $3, $4, $5, $6) AS r`,
			throw.Prefix, throw.LastsMicros, throw.Actor, throw.Role.String(), throw.Reason, throw.RequestID).Scan(&policies, &generation)
		if err != nil {
			return err
		}
		switches, err := killSwitches(tx.Query(ctx, killSwitchSQL+"WHERE k.prefix = $1", throw.Prefix))
		if err == nil {
			lies = switches[0]
		}
		return err
	})
	return lies, policies, generation, err
}

// TakeBackKillSwitch has the policies of a prefix enforced again, with its
// audit row in one transaction, and gives the generation with which they are.
// The error is not-found where no switch was thrown for the prefix.
func (s *Store) TakeBackKillSwitch(ctx context.Context, taken policy.KillSwitchReturn) (generation int64, err error) {
	err = s.control(ctx, "take a kill switch back", func(ctx context.Context, tx pgx.Tx) error {
		var removed bool
		err := tx.QueryRow(ctx, `
			SELECT r.o_removed, r.o_generation FROM ration.remove_kill_switch_v1($1, $2, $3, $4, $5) AS r`,
			taken.Prefix, taken.Actor, taken.Role.String(), taken.Reason, taken.RequestID).Scan(&removed, &generation)
		if err == nil && !removed {
			return &policy.Error{
				Code: policy.CodeNotFound, Reason: policy.ReasonNotFound, Detail: "No kill switch lies over this prefix.",
			}
		}
		return err
	})
	return generation, err
}

// KillSwitches gives those that lie, ascending by prefix.
func (s *Store) KillSwitches(ctx context.Context) (switches []*policy.KillSwitch, err error) {
	err = s.control(ctx, "list kill switches", func(ctx context.Context, tx pgx.Tx) error {
		switches, err = killSwitches(tx.Query(ctx, killSwitchSQL+`ORDER BY k.prefix COLLATE "C"`))
		return err
	})
	return switches, err
}

const killSwitchSQL = `SELECT k.prefix, k.actor, k.reason, k.created_at, k.expires_at FROM ration.kill_switch AS k `

func killSwitches(rows pgx.Rows, err error) ([]*policy.KillSwitch, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[policy.KillSwitch])
}

// Expire ends the overrides and kill switches whose time is over, and says how
// many those were. Where it fails, some may have ended.
func (s *Store) Expire(ctx context.Context) (ended int, err error) {
	for {
		more, err := s.expireAt(ctx, 0)
		if ended += more; err != nil || more == 0 {
			return ended, err
		}
	}
}

// expireAt ends some of what is over at an instant of a test clock, 0 in
// production, unless there is none.
func (s *Store) expireAt(ctx context.Context, nowMicros int64) (ended int, err error) {
	err = s.control(ctx, "end what has expired", func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT ration.expire_v1(nullif($1::bigint, 0))", nowMicros).Scan(&ended)
	})
	return ended, err
}

// RunExpiry ends what has expired once a second until ctx ends, which is no
// error. Every instance may: whoever is first does it.
func (s *Store) RunExpiry(ctx context.Context, log *slog.Logger) error {
	failing := false
	for rest(ctx, expiryPause) {
		ended, err := s.Expire(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil && !failing:
			log.WarnContext(ctx, "overrides and kill switches do not expire: their store fails", "error", err)
		case ended > 0:
			log.InfoContext(ctx, "overrides and kill switches expired", "ended", ended)
		}
		failing = err != nil
	}
	return nil
}
