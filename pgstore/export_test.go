package pgstore

import "github.com/jackc/pgx/v5"

// Conn is the connection of a session, nil when it has none.
func (s *Session) Conn() *pgx.Conn { return s.conn }
