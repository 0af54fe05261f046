package devpg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// readyPoll is how often a starting server is asked whether it answers yet.
const readyPoll = 20 * time.Millisecond

// awaitReady returns when the server answers a query. It fails when the server
// ends first, with the last lines of its log.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := ping(ctx, s.URL("postgres", Superuser))
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-s.child.done:
			return fmt.Errorf("PostgreSQL ended while starting (%w); its last words:\n%s", s.child.err, s.child.tail)
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not answer: %w; its last words:\n%s", err, s.child.tail)
		}
	}
}

func ping(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(ctx) //nolint:errcheck // it has answered; how it says goodbye does not matter
	if err := conn.Ping(ctx); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	return nil
}

// EnsureDatabase makes the database unless there is one of that name, owned by
// [Superuser] and in UTF8 whatever the server's own databases are in.
func (s *Server) EnsureDatabase(ctx context.Context, name string) error {
	return s.administer(ctx, func(conn *pgx.Conn) error {
		var exists bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&exists)
		if err == nil && !exists {
			_, err = conn.Exec(ctx, `CREATE DATABASE `+pgx.Identifier{name}.Sanitize()+` TEMPLATE template0 ENCODING 'UTF8'`)
		}
		if err != nil {
			return fmt.Errorf("make database %s: %w", name, err)
		}
		return nil
	})
}

// Admit lets a role that exists log in through [Server.URL], by giving it the
// server's password. Where the socket is trusted there is nothing to do.
func (s *Server) Admit(ctx context.Context, role string) error {
	if s.password == "" {
		return nil
	}
	return s.administer(ctx, func(conn *pgx.Conn) error {
		// ALTER ROLE takes no parameters; the password is hexadecimal.
		statement := fmt.Sprintf(`ALTER ROLE %s LOGIN PASSWORD '%s'`, pgx.Identifier{role}.Sanitize(), s.password)
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("admit role %s: %w", role, err)
		}
		return nil
	})
}

// administer runs work as the superuser on a connection of its own.
func (s *Server) administer(ctx context.Context, work func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres", Superuser))
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer conn.Close(ctx) //nolint:errcheck // what mattered was answered
	return work(conn)
}
