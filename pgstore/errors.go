package pgstore

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rationhq/ration/policy"
)

// SQLSTATEs of the stored functions that callers tell apart; every other one of
// theirs (docs/reference/sql.md) is a fault of ours. Nobody parses texts.
const (
	stateLost = "RN002" // the fast state was lost in a crash
	stateFull = "54000" // create_token_v1 found as many tokens as there may be
)

// interpret makes what a call ended with into a [*policy.StoreError]; doing
// says what was being done. It is nil for nil.
func interpret(doing string, err error) error {
	if err == nil {
		return nil
	}
	return storeError(doing, err)
}

// unasked is [interpret] for what failed before anything was asked of the
// store: then it is known that nothing was charged.
func unasked(doing string, err error) error {
	store := storeError(doing, err)
	if store.Fault == policy.StoreUnsure {
		store.Fault = policy.StoreUnreachable
	}
	return store
}

func storeError(doing string, err error) *policy.StoreError {
	return &policy.StoreError{Fault: fault(err), Doing: doing, Cause: err}
}

// errNoConn is where no connection of a pool was free in time.
var errNoConn = errors.New("no connection was free within the bound")

// isFull says whether there are as many tokens as there may be.
func isFull(err error) bool {
	server, ok := errors.AsType[*pgconn.PgError](err)
	return ok && server.Code == stateFull
}

// isHeld says whether a call ran into its bound, and so did nothing.
func isHeld(err error) bool { return err != nil && fault(err) == policy.StoreHeld }

// fault reads an error of pgx, or of a pool.
func fault(err error) policy.StoreFault {
	if errors.Is(err, errNoConn) {
		return policy.StoreHeld
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return policy.StoreUnreachable
	}
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		if pgconn.SafeToRetry(err) {
			return policy.StoreUnreachable // nothing was sent
		}
		return policy.StoreUnsure
	}
	switch server.Code {
	case stateLost:
		return policy.StoreStateLost
	case "57014", // query_canceled: statement_timeout
		"55P03", // lock_not_available: lock_timeout
		"40P01": // deadlock_detected: not of ours, but somebody's session by hand
		return policy.StoreHeld
	case "57P01", "57P02", // admin_shutdown, crash_shutdown: a COMMIT may have been under way
		"57P05": // idle_session_timeout
		return policy.StoreUnsure
	case "57P03", // cannot_connect_now: starting up, shutting down, recovering
		"25006": // read_only_sql_transaction: a standby
		return policy.StoreUnreachable
	}
	switch class := server.Code[:min(2, len(server.Code))]; {
	case class == "08", class == "28", // connection exceptions, authorisation
		class == "53", class == "58": // out of connections, memory or disk; I/O errors
		return policy.StoreUnreachable
	case strings.HasPrefix(class, "57"):
		return policy.StoreUnsure
	}
	return policy.StoreFaulty
}

// outdated says whether an error is about a prepared statement that the server
// no longer has (26000) or whose result has changed since (0A000).
func outdated(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && (server.Code == "26000" || server.Code == "0A000")
}

// notMigrated says whether an error is about a schema or table that is not
// there, or that the service was not let into yet: the last migration grants.
func notMigrated(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && (server.Code == "42P01" || server.Code == "3F000" || server.Code == "42501")
}
