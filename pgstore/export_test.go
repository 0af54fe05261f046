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

// DeleteAt is Delete at an instant of a test clock.
func (s *Store) DeleteAt(ctx context.Context, removal policy.Removal, nowMicros int64) error {
	return s.deleteAt(ctx, removal, nowMicros)
}

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

// ConfirmAt is Confirm at an instant of a test clock.
func (s *Store) ConfirmAt(ctx context.Context, instance *policy.Instance, nowMicros int64) error {
	return s.confirmAt(ctx, instance, nowMicros)
}

// KeyAt, ResetKeyAt and RebaseAt are Key, ResetKey and Rebase at an instant of
// a test clock.
func (s *Store) KeyAt(
	ctx context.Context, id string, values *[policy.AttributeCount]string, nowMicros int64,
) (*policy.KeyState, error) {
	return s.keyAt(ctx, id, values, nowMicros)
}

func (s *Store) ResetKeyAt(ctx context.Context, reset policy.KeyReset, nowMicros int64) (*policy.KeyState, error) {
	return s.resetKeyAt(ctx, reset, nowMicros)
}

func (s *Store) RebaseAt(ctx context.Context, rebase policy.Rebase, nowMicros int64) (int, *policy.RebasePlace, error) {
	return s.rebaseAt(ctx, rebase, nowMicros)
}

// CountBalances is what a dry run counts, for so long at most, at an instant of
// a test clock.
func (s *Store) CountBalances(
	ctx context.Context, id string, change *policy.Change, longest time.Duration, nowMicros int64,
) (policy.DryBalances, error) {
	return s.countBalances(ctx, id, change, longest, nowMicros)
}

// PutOverrideAt, RemoveOverrideAt and ExpireAt are PutOverride, RemoveOverride
// and Expire at an instant of a test clock.
func (s *Store) PutOverrideAt(
	ctx context.Context, put policy.OverridePut, nowMicros int64,
) (record *policy.OverrideRecord, created bool, generation int64, err error) {
	return s.putOverrideAt(ctx, put, nowMicros)
}

func (s *Store) RemoveOverrideAt(ctx context.Context, removal policy.OverrideRemoval, nowMicros int64) (generation int64, err error) {
	return s.removeOverrideAt(ctx, removal, nowMicros)
}

func (s *Store) ExpireAt(ctx context.Context, nowMicros int64) (ended int, err error) {
	return s.expireAt(ctx, nowMicros)
}
