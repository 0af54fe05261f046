package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// ResetKey makes one key's state full or empty and gives what it is then. The
// errors are those of [Store.Key]; slots-held where a concurrency key has live
// slots and the reset may not release them, invalid-request where it cannot
// be empty.
func (s *Store) ResetKey(ctx context.Context, reset policy.KeyReset) (*policy.KeyState, error) {
	return s.resetKeyAt(ctx, reset, 0)
}

// resetKeyAt is ResetKey at an instant of a test clock; 0 in production.
func (s *Store) resetKeyAt(ctx context.Context, reset policy.KeyReset, nowMicros int64) (state *policy.KeyState, err error) {
	err = s.control(ctx, "reset a key", func(ctx context.Context, tx pgx.Tx) error {
		installed, err := inForce(ctx, tx, reset.PolicyID, &reset.Values)
		if err != nil {
			return err
		}
		var outcome string
		err = tx.QueryRow(ctx, `
			SELECT r.o_outcome
			FROM ration.reset_bucket_v1($1, $2, $3::jsonb, $4, $5, $6, $7, $8, $9, nullif($10::bigint, 0)) AS r`,
			shard, reset.PolicyID, attributesOf(installed.Spec, &reset.Values), reset.To.String(), reset.Release,
			reset.Actor, reset.Role.String(), reset.Reason, reset.RequestID, nowMicros).Scan(&outcome)
		if err != nil {
			return err
		}
		switch outcome {
		case "reset":
			state, err = readKey(ctx, tx, installed, &reset.Values, nowMicros)
			return err
		case "slots":
			return &policy.Error{
				Code: policy.CodeConflict, Reason: policy.ReasonSlotsHeld,
				Detail: "The key has live slots; releaseSlots ends them, though the work that holds them goes on.",
			}
		case "impossible":
			return policy.Invalid(policy.ReasonInvalidRequest, "One fault was found.", policy.Fault{
				Pointer: "/to", Detail: "cannot be empty for concurrency: nobody would hold the slots, so that nobody could release them",
			})
		default: // changed or deleted since it was looked at
			return notFound()
		}
	})
	return state, err
}
