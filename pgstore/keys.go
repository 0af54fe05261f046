package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// Key gives the state of one key of a policy. The error is not-found where
// there is no such policy, invalid-request where values name no key of it.
func (s *Store) Key(ctx context.Context, id string, values *[policy.AttributeCount]string) (*policy.KeyState, error) {
	return s.keyAt(ctx, id, values, 0)
}

// keyAt is Key at an instant of a test clock; 0 in production.
func (s *Store) keyAt(
	ctx context.Context, id string, values *[policy.AttributeCount]string, nowMicros int64,
) (state *policy.KeyState, err error) {
	err = s.control(ctx, "read a key's state", func(ctx context.Context, tx pgx.Tx) error {
		installed, err := inForce(ctx, tx, id, values)
		if err != nil {
			return err
		}
		state, err = readKey(ctx, tx, installed, values, nowMicros)
		return err
	})
	return state, err
}

// inForce gives the version in force of the policy that values name a key of.
func inForce(ctx context.Context, tx pgx.Tx, id string, values *[policy.AttributeCount]string) (*policy.Installed, error) {
	installed, err := one(tx.Query(ctx, installedSQL+"p.id = $1 AND v.version = p.version AND NOT v.deleted", id))
	if err != nil {
		return nil, err
	}
	return installed, installed.Spec.CheckKey(values)
}

// readKey reads the state of one key.
func readKey(
	ctx context.Context, tx pgx.Tx, installed *policy.Installed, values *[policy.AttributeCount]string, nowMicros int64,
) (*policy.KeyState, error) {
	var number int32
	var key policy.Key
	err := tx.QueryRow(ctx, "SELECT k.o_number, k.o_key FROM ration.locate_key_v1($1, $2::jsonb) AS k",
		installed.ID, attributesOf(installed.Spec, values)).Scan(&number, &key)
	if err != nil {
		return nil, err
	}
	states, err := readKeys(ctx, tx, installed, []int32{number}, []policy.Key{key}, nowMicros)
	if err != nil || len(states) == 0 {
		return nil, errors.Join(err, notFound()) // deleted meanwhile
	}
	state := states[0]
	state.Values = values
	if installed.Spec.Limit.Algorithm == policy.Concurrency {
		state.Slots, err = readSlots(ctx, tx, key, state.AtMicros)
	}
	return state, err
}

// attributesOf gives the values of a policy's key by the names that SQL uses.
func attributesOf(spec *policy.Spec, values *[policy.AttributeCount]string) map[string]string {
	attributes := make(map[string]string, len(spec.Per))
	for _, attribute := range spec.Per {
		attributes[attribute.String()] = values[attribute]
	}
	return attributes
}

// readKeys reads the states of keys of a policy, each with the number of the
// policy that counts it: another one where the key has a limit of its own.
func readKeys(
	ctx context.Context, tx pgx.Tx, installed *policy.Installed, numbers []int32, keys []policy.Key, nowMicros int64,
) ([]*policy.KeyState, error) {
	rows, err := tx.Query(ctx, `
		SELECT f.key, p.capacity, f.remaining, c.now, f.reset_after, f.ahead, f.stored, coalesce(f.settled_version, 0),
		       o.action, o.reason, o.actor, coalesce(o.expires_at, 0)
		FROM (SELECT ration.clock_v1(nullif($4::bigint, 0)) AS now) AS c
		CROSS JOIN LATERAL ration.key_figures_v1($1, $2, $3, c.now) WITH ORDINALITY AS f
		JOIN ration.policy AS p ON p.number = f.policy
		LEFT JOIN ration.override AS o ON o.limited = f.policy OR o.policy = f.policy AND o.key = f.key
		ORDER BY f.ordinality`, shard, numbers, keys, nowMicros)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*policy.KeyState, error) {
		state := &policy.KeyState{Policy: installed}
		var action, reason, actor *string
		var expiresAt int64
		err := row.Scan(&state.Key, &state.Limit, &state.Remaining, &state.AtMicros, &state.ResetAfterMicros, &state.AheadMicros,
			&state.Stored, &state.SettledVersion, &action, &reason, &actor, &expiresAt)
		if err == nil && action != nil {
			known, _ := policy.ParseOverrideAction(*action)
			state.Override = &policy.KeyOverride{Action: known, Reason: *reason, Actor: *actor, ExpiresAtMicros: expiresAt}
		}
		return state, err
	})
}

// readSlots reads the live slots of a key, the first to expire first.
func readSlots(ctx context.Context, tx pgx.Tx, key policy.Key, nowMicros int64) ([]policy.HeldSlot, error) {
	rows, err := tx.Query(ctx, `
		SELECT s.id, s.expires_at, s.cost FROM ration.slot AS s
		WHERE s.shard = $1 AND s.key = $2 AND s.expires_at > $3 ORDER BY s.expires_at, s.id LIMIT $4`,
		shard, key, nowMicros, policy.SlotsShownMax)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (slot policy.HeldSlot, err error) {
		err = row.Scan(&slot.ID, &slot.ExpiresAtMicros, &slot.Cost)
		return slot, err
	})
}

// Keys gives the states of at most limit stored keys of a policy, ascending,
// those behind the key after (the zero Key begins). A call examines a bounded
// part of what is stored, of whatever policy, so that a page may be empty and
// not the last: more says whether to go on, behind next.
func (s *Store) Keys(
	ctx context.Context, id string, after policy.Key, limit int,
) (states []*policy.KeyState, next policy.Key, more bool, err error) {
	err = s.control(ctx, "list a policy's keys", func(ctx context.Context, tx pgx.Tx) error {
		installed, err := one(tx.Query(ctx, installedSQL+"p.id = $1 AND v.version = p.version AND NOT v.deleted", id))
		if err != nil {
			return err
		}
		var numbers []int32
		var keys []policy.Key
		var last *policy.Key
		err = tx.QueryRow(ctx, "SELECT k.o_policies, k.o_keys, k.o_last FROM ration.policy_keys_v1($1, $2, $3, $4) AS k",
			shard, id, after, limit).Scan(&numbers, &keys, &last)
		if err != nil {
			return err
		}
		if last != nil {
			next, more = *last, true
		}
		states, err = readKeys(ctx, tx, installed, numbers, keys, 0)
		return err
	})
	return states, next, more, err
}
