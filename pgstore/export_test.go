package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// Conn is the connection of a session, nil when it has none.
func (s *Session) Conn() *pgx.Conn { return s.conn }

// Rest makes the connection one that has been idle for long.
func (s *Session) Rest() { s.usedAt = time.Time{} }

// Work makes the connection one that has just been used.
func (s *Session) Work() { s.usedAt = time.Now() }

// PutAt is Put at an instant of a test clock.
func (s *Store) PutAt(ctx context.Context, put policy.Put, nowMicros int64) (*policy.Installed, bool, error) {
	return s.putAt(ctx, put, nowMicros)
}

// SettleAt, ReleaseSlotAt and RenewSlotAt are Settle, ReleaseSlot and RenewSlot
// at an instant of a test clock.
func (s *Store) SettleAt(ctx context.Context, settlement policy.Settlement, nowMicros int64) (policy.Settled, error) {
	return s.settleAt(ctx, settlement, nowMicros)
}

func (s *Store) ReleaseSlotAt(ctx context.Context, id policy.SlotID, nowMicros int64) (released bool, err error) {
	return s.releaseSlotAt(ctx, id, nowMicros)
}

func (s *Store) RenewSlotAt(ctx context.Context, id policy.SlotID, nowMicros int64) (expiresAtMicros int64, renewed bool, err error) {
	return s.renewSlotAt(ctx, id, nowMicros)
}
