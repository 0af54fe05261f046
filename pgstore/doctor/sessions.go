package doctor

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// sessionChecks look at what stands between the service and PostgreSQL.
func sessionChecks() []check {
	return []check{{name: "pooler", look: lookForPooler}}
}

// lookForPooler finds out whether sessions are the server's own. A pooler gives
// its clients numbers of its own in place of a server process's; one that pools
// transactions gives a session's server away between two of them.
func lookForPooler(ctx context.Context, e *examination) error {
	const direct = "let RATION_DATABASE_URL name PostgreSQL itself: an instance keeps few connections, and uses them well"
	process := func(conn interface {
		QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row
	},
	) (pid uint32, err error) {
		err = conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
		return pid, err
	}
	pooled, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = pooled.Close(context.WithoutCancel(ctx)) }() // it has only read
	before, err := process(pooled)
	if err != nil {
		return err
	}
	if before == pooled.PgConn().PID() {
		return nil
	}
	// Another session takes a server for as long as its transaction runs: the one that is free, if any is.
	other, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()
	tx, err := other.Begin(ctx)
	if err != nil {
		e.note(Fault, "a pooler refuses transactions (it pools statements): "+err.Error(), direct)
		return nil
	}
	taken, err := process(tx)
	after, laterErr := process(pooled)
	if err := errors.Join(err, laterErr, tx.Rollback(ctx)); err != nil {
		return err
	}
	if taken == before || after != before {
		e.note(Fault, "a pooler that pools transactions stands before PostgreSQL: time limits of sessions, prepared statements and notifications of policy changes are lost in it", direct)
		return nil
	}
	e.note(Note, "a pooler that pools sessions stands before PostgreSQL: it works, and adds its time to every decision", direct)
	return nil
}
