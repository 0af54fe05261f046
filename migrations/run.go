package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	driver "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// up applies the missing steps one by one, so that a failure is known by its
// file and by the version before it.
func (h *history) up(ctx context.Context, url string) error {
	return h.locked(ctx, url, func(status Status, m *migrator) error {
		if err := h.refuse(status); err != nil {
			return err
		}
		for version := status.Version; version < h.latest(); version++ {
			if err := m.step(ctx, +1, version, h.steps[version].up); err != nil {
				return err
			}
		}
		return nil
	})
}

func (h *history) downOne(ctx context.Context, url string) error {
	return h.locked(ctx, url, func(status Status, m *migrator) error {
		if err := h.refuse(status); err != nil {
			return err
		}
		if status.Version == 0 {
			return nil
		}
		return m.step(ctx, -1, status.Version, h.steps[status.Version-1].down)
	})
}

func (h *history) force(ctx context.Context, url string, version uint) error {
	if version > h.latest() {
		return &UnknownVersionError{Version: version, Latest: h.latest()}
	}
	return h.locked(ctx, url, func(_ Status, m *migrator) error {
		return m.setVersion(ctx, version)
	})
}

func (h *history) version(ctx context.Context, url string) (Status, error) {
	conn, err := connect(ctx, url)
	if err != nil {
		return Status{}, err
	}
	defer closeConn(ctx, conn)
	return h.status(ctx, conn)
}

// refuse says why a database cannot be migrated from where it stands.
func (h *history) refuse(status Status) error {
	switch {
	case status.Dirty:
		return &DirtyError{Version: status.Version}
	case status.Version > h.latest():
		return &NewerError{Version: status.Version, Latest: h.latest()}
	}
	return nil
}

// status reads the version table, which need not exist.
func (h *history) status(ctx context.Context, conn *pgx.Conn) (Status, error) {
	status := Status{Latest: h.latest()}
	var exists bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('ration.schema_migrations') IS NOT NULL`).Scan(&exists); err != nil {
		return Status{}, fmt.Errorf("look for the version table: %w", err)
	}
	if !exists {
		return status, nil
	}
	var version int64
	err := conn.QueryRow(ctx, `SELECT version, dirty FROM ration.schema_migrations`).Scan(&version, &status.Dirty)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return Status{}, fmt.Errorf("read the schema version: %w", err)
	}
	status.Version = uint(max(version, 0)) // golang-migrate writes "none" as -1
	return status, nil
}

// locked runs work under the migration lock, with the schema made.
func (h *history) locked(ctx context.Context, url string, work func(Status, *migrator) error) error {
	conn, err := lock(ctx, url)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	// Asked first, because CREATE SCHEMA IF NOT EXISTS wants the right to
	// create even where there is nothing to create.
	var exists bool
	if err := conn.QueryRow(ctx, `SELECT to_regnamespace('ration') IS NOT NULL`).Scan(&exists); err != nil {
		return fmt.Errorf("look for schema ration: %w", err)
	}
	if !exists {
		if _, err := conn.Exec(ctx, `CREATE SCHEMA ration`); err != nil {
			return fmt.Errorf("create schema ration: %w", err)
		}
	}
	status, err := h.status(ctx, conn)
	if err != nil {
		return err
	}
	m, err := h.open(url, conn)
	if err != nil {
		return err
	}
	defer m.close()
	return work(status, m)
}

// restoreTimeout bounds putting a version back: one small transaction.
const restoreTimeout = 10 * time.Second

// migrator is golang-migrate on one connection of its own.
type migrator struct {
	*migrate.Migrate
	history *history
	lock    *pgx.Conn // holds the migration lock
	conn    *pgx.Conn // the one that migrations run on
}

func (h *history) open(url string, lock *pgx.Conn) (*migrator, error) {
	config, err := connConfig(url)
	if err != nil {
		return nil, err
	}
	m := &migrator{history: h, lock: lock}
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(_ context.Context, conn *pgx.Conn) error {
		m.conn = conn
		return nil
	}))
	db.SetMaxOpenConns(1)
	if m.Migrate, err = h.openDriver(db, config.Database); err != nil {
		_ = db.Close() // the first error is the one to tell
		return nil, err
	}
	return m, nil
}

func (h *history) openDriver(db *sql.DB, name string) (*migrate.Migrate, error) {
	files, err := iofs.New(h.files, ".")
	if err != nil {
		return nil, fmt.Errorf("open the migrations: %w", err)
	}
	// Multi-statement mode stays off: it cuts function bodies at every `;`.
	target, err := driver.WithInstance(db, &driver.Config{DatabaseName: name, SchemaName: "ration"})
	if err != nil {
		return nil, fmt.Errorf("prepare the version table: %w", err)
	}
	m, err := migrate.NewWithInstance("iofs", files, name, target)
	if err != nil {
		return nil, fmt.Errorf("prepare to migrate: %w", err)
	}
	return m, nil
}

// step runs one file: n is +1 or -1, before the version it starts from. When
// PostgreSQL refuses the file, nothing of it has happened, and the version is
// put back instead of asking an operator to say so.
func (m *migrator) step(ctx context.Context, n int, before uint, file string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("before migration %s: %w", file, context.Cause(ctx))
	}
	stop := context.AfterFunc(ctx, m.cancel)
	err := m.Steps(n)
	stop()
	if err == nil {
		return nil
	}
	failed := &FailedError{File: file, Cause: err}
	// Only the file itself fails with this type, as a value; what the driver
	// does around it fails with other types, when the file may be in force.
	var inFile database.Error
	if !errors.As(err, &inFile) {
		return failed
	}
	failed.Line, failed.Cause = inFile.Line, inFile.OrigErr
	var refused *pgconn.PgError
	if errors.As(failed.Cause, &refused) && refused.Severity == "ERROR" && m.history.atomic(file) {
		restored := m.restore(ctx, before)
		failed.RolledBack, failed.Cause = restored == nil, errors.Join(failed.Cause, restored)
	}
	return failed
}

// setVersion records a version that is in no doubt. It does so on the lock's
// connection: PostgreSQL signals a cancelled session twice, and the second
// signal may hit the statement that comes next on the other one.
func (m *migrator) setVersion(ctx context.Context, version uint) error {
	err := pgx.BeginFunc(ctx, m.lock, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM ration.schema_migrations`)
		if err == nil && version > 0 { // golang-migrate reads no row as no version
			_, err = tx.Exec(ctx, `INSERT INTO ration.schema_migrations (version, dirty) VALUES ($1, false)`, version)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("record schema version %d: %w", version, err)
	}
	return nil
}

// restore is setVersion when the caller's context may have ended already.
func (m *migrator) restore(ctx context.Context, version uint) error {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer done()
	return m.setVersion(ctx, version)
}

// cancel ends the running statement when the caller's context has ended;
// golang-migrate runs it without one.
func (m *migrator) cancel() {
	ctx, done := context.WithTimeout(context.Background(), closeTimeout)
	defer done()
	if err := m.conn.PgConn().CancelRequest(ctx); err != nil {
		_ = m.conn.PgConn().Conn().Close() // nobody answers: stop waiting
	}
}

func (m *migrator) close() {
	_, _ = m.Migrate.Close() // both sides only drop what the lock's end would drop
}
