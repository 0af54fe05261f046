package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// ReleaseSlot ends a slot before its time; false says that it was not live any
// more, or never was. What became of its policy makes no difference.
func (s *Store) ReleaseSlot(ctx context.Context, id policy.SlotID) (released bool, err error) {
	return s.releaseSlotAt(ctx, id, 0)
}

// releaseSlotAt is ReleaseSlot at an instant of a test clock; 0 in production.
func (s *Store) releaseSlotAt(ctx context.Context, id policy.SlotID, nowMicros int64) (released bool, err error) {
	err = s.operate(ctx, "release a slot", func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT ration.release_slot_v1($1, $2, nullif($3::bigint, 0))", shard, id, nowMicros).Scan(&released)
	})
	return released && err == nil, err
}

// RenewSlot gives a live slot its whole time again, from now on; false says
// that it was not live any more, or never was.
func (s *Store) RenewSlot(ctx context.Context, id policy.SlotID) (expiresAtMicros int64, renewed bool, err error) {
	return s.renewSlotAt(ctx, id, 0)
}

// renewSlotAt is RenewSlot at an instant of a test clock; 0 in production.
func (s *Store) renewSlotAt(ctx context.Context, id policy.SlotID, nowMicros int64) (expiresAtMicros int64, renewed bool, err error) {
	var expiresAt *int64
	err = s.operate(ctx, "renew a slot", func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT ration.renew_slot_v1($1, $2, nullif($3::bigint, 0))", shard, id, nowMicros).Scan(&expiresAt)
	})
	if err != nil || expiresAt == nil {
		return 0, false, err
	}
	return *expiresAt, true, nil
}
