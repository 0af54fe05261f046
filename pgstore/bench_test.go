package pgstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// Units of the tests' clock.
const (
	second = int64(1_000_000)
	hour   = 3600 * second
	year   = 365 * 24 * hour
)

// epochMicros is where the tests' clock begins, in 2024.
const epochMicros = int64(1_704_067_200_000_000)

// bench is a database whose clock the test holds, with the store in front of
// it and the owner's hands behind it.
type bench struct {
	testing.TB

	db    *dbtest.DB
	owner *pgxpool.Pool
	store *pgstore.Store
}

// newBench makes a bench. What is decided is the point in most tests, not how
// soon: no call runs into its bound on a busy machine.
func newBench(tb testing.TB) *bench {
	tb.Helper()
	return benchOn(tb, dbtest.New(tb, dbtest.TestClock))
}

func benchOn(tb testing.TB, db *dbtest.DB) *bench {
	tb.Helper()
	b := &bench{TB: tb, db: db, owner: db.Owner()}
	b.setForService("statement_timeout", "20s")
	b.setForService("lock_timeout", "20s")
	b.store = open(tb, db)
	return b
}

// setForService changes a setting that later sessions of the service begin
// with.
func (b *bench) setForService(name, value string) {
	b.Helper()
	b.exec(fmt.Sprintf("ALTER ROLE ration_service IN DATABASE %s SET %s = '%s'", pgx.Identifier{b.db.Name}.Sanitize(), name, value))
}

// exec runs a statement as the owner.
func (b *bench) exec(sql string, arguments ...any) {
	b.Helper()
	if _, err := b.owner.Exec(context.Background(), sql, arguments...); err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
}

// service connects as the service, for as long as the test runs.
func (b *bench) service() *pgx.Conn {
	b.Helper()
	return b.connect(b.db.ServiceURL())
}

func (b *bench) connect(url string) *pgx.Conn {
	b.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) }) // the test may have broken it
	return conn
}

// session is one of the store's, as a lane has it.
func (b *bench) session() *pgstore.Session {
	session := b.store.NewSession()
	b.Cleanup(session.Close)
	return session
}

// shape is a policy in few words. What is not said is fast, idle after a loss
// and never refills within a test.
type shape struct {
	capacity   int64
	tokens     string // refilled in seconds, "" 1
	seconds    string // "" a year; of a window, or the life of a slot
	algorithm  policy.Algorithm
	strict     bool
	shadow     bool
	durability policy.Durability
	afterLoss  policy.AfterLoss
}

func (s shape) change(tb testing.TB) *policy.Change {
	tb.Helper()
	tokens, seconds, loss := s.tokens, s.seconds, ""
	if tokens == "" {
		tokens = "1"
	}
	if seconds == "" {
		seconds = fmt.Sprint(year / second)
	}
	if s.durability == policy.Fast {
		loss = fmt.Sprintf(`"afterLoss": "%s",`, s.afterLoss)
	}
	limit := fmt.Sprintf(`"limit": %d, "windowSeconds": %s`, s.capacity, seconds)
	switch s.algorithm {
	case policy.TokenBucket:
		limit = fmt.Sprintf(`"capacity": %d, "refillTokens": %s, "refillSeconds": %s`, s.capacity, tokens, seconds)
	case policy.Concurrency:
		limit = fmt.Sprintf(`"limit": %d, "ttlSeconds": %s`, s.capacity, seconds)
	case policy.SlidingWindowCounter:
		limit += fmt.Sprintf(`, "strict": %t`, s.strict)
	case policy.FixedWindow, policy.SlidingWindowLog: // as they are
	}
	mode := policy.Enforce
	if s.shadow {
		mode = policy.Shadow
	}
	change, err := policy.ParseChange(fmt.Appendf(nil, `{"match": {}, "per": ["account"], "durability": "%s", "mode": "%s", %s
		"limit": {"algorithm": "%s", %s}}`, s.durability, mode, loss, s.algorithm, limit))
	if err != nil {
		tb.Fatal(err)
	}
	return change
}

// install puts a version of a policy in force at an instant after the epoch.
func (b *bench) install(id string, expected int, s shape, atMicros int64) *policy.Installed {
	b.Helper()
	installed, _, err := b.store.PutAt(context.Background(),
		policy.Put{ID: id, Expected: expected, Change: s.change(b), Author: policy.Author{Actor: "test"}}, epochMicros+atMicros)
	if err != nil {
		b.Fatalf("install %s after version %d: %v", id, expected, err)
	}
	return installed
}

// generation is the number of the policy set in force.
func (b *bench) generation() int64 {
	b.Helper()
	return scalar[int64](b, "SELECT generation FROM ration.policy_set")
}

// scalar is the one value of a query of the owner's.
func scalar[T any](b *bench, sql string, arguments ...any) T {
	b.Helper()
	var value T
	if err := b.owner.QueryRow(context.Background(), sql, arguments...).Scan(&value); err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
	return value
}

// keyOf is a key that sorts by its number.
func keyOf(number uint64) policy.Key {
	var key policy.Key
	binary.BigEndian.PutUint64(key[:], number)
	return key
}

// batch asks one token of each of some keys of a policy for one caller each.
func (b *bench) batch(of *policy.Installed, keys ...uint64) *policy.Batch {
	b.Helper()
	batch := &policy.Batch{Durability: of.Spec.Durability, Generation: b.generation(), NowMicros: epochMicros + second}
	for _, key := range keys {
		ask := policy.Ask{Key: keyOf(key), Policy: of.Number, Count: 1, Cost: 1}
		ask.Key[len(ask.Key)-1] = byte(of.Number)
		batch.Asks = append(batch.Asks, ask)
	}
	return batch
}

// through decides a batch down both paths, as a lane does.
func through(session *pgstore.Session, batch *policy.Batch) (policy.Answers, error) {
	var answers policy.Answers
	s := subject{session: session}
	err := s.Decide(context.Background(), batch, &answers)
	return answers, err
}

// decide is through for whom an error ends the test.
func (b *bench) decide(session *pgstore.Session, batch *policy.Batch) policy.Answers {
	b.Helper()
	answers, err := through(session, batch)
	if err != nil {
		b.Fatal(err)
	}
	return answers
}

// stateTables are what decisions write.
var stateTables = [...]string{
	"bucket_fast", "bucket_durable", "window_fast", "window_durable", "log_fast", "log_durable", "slot_parent", "slot", "operation",
}

// stored lists the rows of all of them, to be compared.
func (b *bench) stored() string {
	b.Helper()
	var rows []string
	for _, table := range stateTables {
		rows = append(rows, fmt.Sprintf("SELECT '%s ' || t::text AS row FROM ration.%[1]s AS t", table))
	}
	return scalar[string](b, `SELECT coalesce(string_agg(s.row, E'\n' ORDER BY s.row), '')
		FROM (`+strings.Join(rows, " UNION ALL ")+`) AS s`)
}

// sqlState is the SQLSTATE of an error, "" when it is none of PostgreSQL's.
func sqlState(err error) string {
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		return server.Code
	}
	return ""
}

// faultOf is what a call of the store came to, as its callers see it.
func faultOf(tb testing.TB, err error) policy.StoreFault {
	tb.Helper()
	var store *policy.StoreError
	if !errors.As(err, &store) {
		tb.Fatalf("%v is no *policy.StoreError", err)
	}
	return store.Fault
}
