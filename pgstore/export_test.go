package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// Conn is the connection of a session, nil when it has none.
func (s *Session) Conn() *pgx.Conn { return s.conn }

// PutAt is Put at an instant of a test clock.
func (s *Store) PutAt(ctx context.Context, put policy.Put, nowMicros int64) (*policy.Installed, bool, error) {
	return s.putAt(ctx, put, nowMicros)
}
