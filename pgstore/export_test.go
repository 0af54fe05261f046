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
