package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rationhq/ration/policy"
)

// The schema that this program knows: it refuses another major, and accepts
// newer minors so that old and new programs run side by side during a roll-out.
const (
	schemaMajor    = 1
	schemaMinorMin = 2
)

// controlConnsMax bounds the pool for policies and upkeep: one for each kind
// of work that may run at once (load, put, clean, sweep, recover, confirm).
const controlConnsMax = 6

// controlTimeout bounds work through that pool. The role's own
// statement_timeout is made for decisions, and too short for a policy change
// behind another one: the pool's sessions begin with this one instead.
const controlTimeout = 5 * time.Second

// shard is where all of one server's state is.
const shard = 0

// Config is what a Store is opened with.
type Config struct {
	URL         string        // connection string of PostgreSQL, not through a pooler that hides LISTEN
	CallTimeout time.Duration // a call of a session, or about one operation or slot, without an answer for so long is abandoned
}

// Store is the store in one PostgreSQL database.
type Store struct {
	config      *pgx.ConnConfig // of connections outside the pools: lanes and the listener
	pool        *pgxpool.Pool
	operations  *pgxpool.Pool
	callTimeout time.Duration
}

// Open connects, checks that the schema is one that this program knows and
// that sessions begin with the settings of the service's role. Its errors are
// [*policy.StoreError], or say what has to be mended.
func Open(ctx context.Context, config Config) (*Store, error) {
	poolConfig, err := pgxpool.ParseConfig(config.URL)
	if err != nil {
		return nil, fmt.Errorf("read the database's URL: %w", err)
	}
	if err := prepareSessions(ctx, poolConfig.ConnConfig); err != nil {
		return nil, err
	}
	s := &Store{config: poolConfig.ConnConfig.Copy(), callTimeout: config.CallTimeout}
	if s.pool, err = openPool(ctx, poolConfig, controlConnsMax, controlTimeout); err != nil {
		return nil, err
	}
	if s.operations, err = openPool(ctx, poolConfig, operationConnsMax, 0); err != nil {
		s.pool.Close()
		return nil, err
	}
	return s, nil
}

// openPool makes a pool. Its sessions begin with a bound of their own for each
// statement, unless it is 0: then with that of sessions that decide.
func openPool(ctx context.Context, config *pgxpool.Config, connsMax int32, bound time.Duration) (*pgxpool.Pool, error) {
	config = config.Copy()
	config.MaxConns = connsMax
	if bound > 0 {
		for _, name := range []string{"statement_timeout", "lock_timeout"} {
			config.ConnConfig.RuntimeParams[name] = fmt.Sprint(bound.Milliseconds())
		}
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, interpret("open the store", err)
	}
	return pool, nil
}

// Close ends the pools' connections. Sessions are closed by their lanes.
func (s *Store) Close() {
	s.pool.Close()
	s.operations.Close()
}

// prepareSessions checks the schema and sees to the session settings. They
// have one home, ALTER ROLE ration_service IN DATABASE; a session of another
// role is given the same at its start.
func prepareSessions(ctx context.Context, config *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return interpret("connect to the store", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := checkSchema(ctx, conn); err != nil {
		return err
	}
	var role string
	var configurable bool // unless migrations are missing
	var settings []string
	err = conn.QueryRow(ctx, `
		SELECT current_user, pg_catalog.to_regproc('ration.configure_roles_v1') IS NOT NULL,
		       coalesce((SELECT s.setconfig FROM pg_catalog.pg_db_role_setting AS s
		                 WHERE s.setrole = pg_catalog.to_regrole('ration_service')
		                   AND s.setdatabase = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())),
		                '{}')`).Scan(&role, &configurable, &settings)
	if err != nil {
		return interpret("read the session settings of ration_service", err)
	}
	if len(settings) == 0 && !configurable {
		return errors.New("the database's schema is migrated in part only: run `ration migrate up`")
	}
	if len(settings) == 0 {
		return errors.New("role ration_service has no settings in this database (as after CREATE DATABASE … TEMPLATE or a " +
			"restore): call SELECT ration.configure_roles_v1() as the owner")
	}
	if role == "ration_service" {
		return nil
	}
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		config.RuntimeParams[name] = value
	}
	return nil
}

// checkSchema refuses a database of another major version.
func checkSchema(ctx context.Context, conn *pgx.Conn) error {
	var major, minor int
	err := conn.QueryRow(ctx, "SELECT v.major, v.minor FROM ration.schema_version AS v").Scan(&major, &minor)
	switch {
	case notMigrated(err):
		return errors.New("the database has no Ration schema yet, or not all of it: run `ration migrate up`")
	case err != nil:
		return interpret("read the schema's version", err)
	case major != schemaMajor || minor < schemaMinorMin:
		return fmt.Errorf("the database's schema is version %d.%d, this program needs %d.%d or a newer minor",
			major, minor, schemaMajor, schemaMinorMin)
	}
	return nil
}

// Recover records the loss of the fast state and begins a new incarnation,
// unless another instance has done so already; found says that this call did.
// Its errors are [*policy.Error], as those of all methods of the store but of
// its sessions are.
func (s *Store) Recover(ctx context.Context) (found bool, err error) {
	err = s.control(ctx, "recover the fast state", func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT ration.recover_v1()").Scan(&found)
	})
	return found && err == nil, err
}

// control runs work in a transaction of the pool, connecting included, within
// its bound. Its errors are [*policy.Error].
func (s *Store) control(ctx context.Context, doing string, work func(context.Context, pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	return problem(doing, pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return work(ctx, tx) }))
}

// problem makes what the work of a pool ended with into a [*policy.Error],
// unless it is one. It is nil for nil.
func problem(doing string, err error) error {
	var known *policy.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return storeError(doing, err).Problem()
}
