package migrations

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
)

// lockKey is the advisory lock that keeps migrators of one database apart:
// "ration" in ASCII. Advisory locks are counted per database.
const lockKey int64 = 0x726174696f6e

// lockPoll is how often a waiting instance looks whether the lock is free.
// It polls because a session blocked in pg_advisory_lock holds a snapshot,
// which would make the other instance's CREATE INDEX CONCURRENTLY wait for it:
// both for ever.
const lockPoll = 100 * time.Millisecond

// closeTimeout bounds the goodbye to a server that may be gone.
const closeTimeout = 2 * time.Second

// lock takes the migration lock on a connection of its own and returns that
// connection; closing it gives the lock back, and so does the death of the
// process.
func lock(ctx context.Context, url string) (*pgx.Conn, error) {
	conn, err := connect(ctx, url)
	if err != nil {
		return nil, err
	}
	if err := waitForLock(ctx, conn); err != nil {
		closeConn(ctx, conn)
		return nil, err
	}
	return conn, nil
}

func waitForLock(ctx context.Context, conn *pgx.Conn) error {
	begin := time.Now()
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		var held bool
		err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, lockKey).Scan(&held)
		switch {
		case ctx.Err() != nil:
			return &BusyError{Waited: time.Since(begin), Cause: context.Cause(ctx)}
		case err != nil:
			return fmt.Errorf("take the migration lock: %w", err)
		case held:
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return &BusyError{Waited: time.Since(begin), Cause: context.Cause(ctx)}
		}
	}
}

// connect opens one connection with the settings that migrations need.
func connect(ctx context.Context, url string) (*pgx.Conn, error) {
	config, err := connConfig(url)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to migrate: %w", err)
	}
	return conn, nil
}

func connConfig(url string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read the database's address: %w", err)
	}
	maps.Copy(config.RuntimeParams, map[string]string{
		"application_name": "ration migrate",
		// DDL that waits for a long transaction makes every later statement on
		// the table wait behind it. Giving up is safe: nothing has happened.
		"lock_timeout": "5s",
		// Rewriting a large table takes the time it takes.
		"statement_timeout": "0",
		// What a role or a database defaults to must not decide what a
		// migration sees, writes, or creates where.
		"default_transaction_isolation": "read committed",
		"default_transaction_read_only": "off",
		"search_path":                   "pg_catalog",
	})
	return config, nil
}

func closeConn(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = conn.Close(ctx) // the lock goes with the session either way
}
