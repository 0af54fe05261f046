package pgstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rationhq/ration/policy"
)

// Session is one connection to the store, for one lane alone: it is not safe
// for concurrent use. It connects when it is first used and again after its
// connection broke.
type Session struct {
	store    *Store
	conn     *pgx.Conn
	usedAt   time.Time // when the last call began or the connection was made
	prepared map[string]*pgconn.StatementDescription
	batches  arguments
	claims   claimArguments
}

// NewSession makes a session that is not connected yet.
func (s *Store) NewSession() *Session {
	return &Session{store: s, prepared: make(map[string]*pgconn.StatementDescription)}
}

// The texts of the decision functions' calls, with the results that decode
// and decodeVerdicts read, by name: a function may come to answer more.
const (
	answered          = "SELECT o_stale, o_now, o_element, o_admitted, o_remaining, o_retry_after, o_reset_after FROM ration."
	takeSQL           = answered + "take_v1($1, $2, $3, $4, $5, $6, $7)"
	takeDurableSQL    = answered + "take_durable_v1($1, $2, $3, $4, $5, $6, $7)"
	takeNewSQL        = answered + "take_new_v1($1, $2, $3, $4, $5, $6, $7, $8)"
	takeNewDurableSQL = answered + "take_new_durable_v1($1, $2, $3, $4, $5, $6, $7, $8)"
	decideSQL         = "SELECT o_stale, o_now, o_status, o_allowed, o_at, o_claim, o_policy, o_version, o_admitted, o_remaining, " +
		"o_retry_after, o_reset_after, o_cost, o_slot, o_slot_expires " +
		"FROM ration.decide_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"
)

// ofTable chooses the call that works on the table of a durability.
func ofTable(durability policy.Durability, fast, durable string) string {
	if durability == policy.Durable {
		return durable
	}
	return fast
}

// Take decides a batch by the fast path. Its errors are [*policy.StoreError].
func (s *Session) Take(ctx context.Context, batch *policy.Batch, answers *policy.Answers) error {
	values := s.batches.encode(batch, nil)
	return s.ask(ctx, ofTable(batch.Durability, takeSQL, takeDurableSQL), values, func(row [][]byte) error {
		return decode(row, len(batch.Asks), answers)
	})
}

// TakeNew decides a batch by the settling path. Its errors are
// [*policy.StoreError].
func (s *Session) TakeNew(ctx context.Context, hold policy.Hold, batch *policy.Batch, answers *policy.Answers) error {
	values := s.batches.encode(batch, []byte(hold.String()))
	return s.ask(ctx, ofTable(batch.Durability, takeNewSQL, takeNewDurableSQL), values, func(row [][]byte) error {
		return decode(row, len(batch.Asks), answers)
	})
}

// Decide decides claims by the general path, in their order. verdicts get one
// for each claim. Its errors are [*policy.StoreError].
func (s *Session) Decide(ctx context.Context, hold policy.Hold, claims *policy.Claims, verdicts *policy.Verdicts) error {
	values := s.claims.encode(claims, hold)
	return s.ask(ctx, decideSQL, values, func(row [][]byte) error {
		return decodeVerdicts(row, claims.Claims, verdicts)
	})
}

// Recover records the loss of the fast state and begins a new incarnation,
// unless another instance has done so; found says that this call did. Its
// errors are [*policy.Error].
func (s *Session) Recover(ctx context.Context) (found bool, err error) { return s.store.Recover(ctx) }

// Close ends the connection.
func (s *Session) Close() {
	if s.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.conn.Close(ctx) // it is gone either way
		s.conn = nil
	}
}

// binaryFormat asks for every parameter and result in the binary protocol.
var binaryFormat = []int16{1}

// ask makes one call of a decision function, and once more on a fresh
// connection where the prepared statement is not what it was: it was refused
// before it ran. decode reads the one row of the result.
func (s *Session) ask(ctx context.Context, sql string, values [][]byte, decode func(row [][]byte) error) error {
	err := s.call(ctx, sql, values, decode)
	if outdated(err) {
		s.abandon()
		err = s.call(ctx, sql, values, decode)
	}
	return err
}

// call makes one call. Its bound is the connection's deadline and not a
// context: that spares a goroutine for each call, and the server is not asked
// to cancel, since cancelling a COMMIT that waits for a standby would report
// success.
func (s *Session) call(ctx context.Context, sql string, values [][]byte, decode func(row [][]byte) error) error {
	if err := s.Connect(ctx); err != nil {
		return err
	}
	conn := s.conn.PgConn()
	s.usedAt = time.Now()
	if err := conn.Conn().SetDeadline(s.usedAt.Add(s.store.callTimeout)); err != nil {
		s.abandon()
		return interpret("bound a call", err)
	}
	result := conn.ExecStatement(context.Background(), s.prepared[sql], values, binaryFormat, binaryFormat) //nolint:contextcheck // the deadline bounds it, see above
	decoded := errResult
	for result.NextRow() {
		decoded = decode(result.Values())
	}
	if _, err := result.Close(); err != nil {
		var server *pgconn.PgError
		if !errors.As(err, &server) || conn.IsClosed() {
			s.abandon()
		}
		return interpret("decide", err)
	}
	return interpret("read decisions", decoded)
}

// errNoCancel keeps pgx from asking the server to cancel an abandoned call.
var errNoCancel = errors.New("an abandoned call is not cancelled")

// connectTimeout bounds making a connection and warming it up.
const connectTimeout = 5 * time.Second

// Connect connects the session unless it is connected. Whoever waits for a
// first decision is spared a connection's making when it is called before. Its
// errors are [*policy.StoreError].
func (s *Session) Connect(ctx context.Context) error {
	if s.conn != nil && !s.conn.IsClosed() && (time.Since(s.usedAt) < idleMax || s.alive()) { //nolint:contextcheck // lookMax bounds the look
		return nil
	}
	s.abandon()
	return s.connect(ctx)
}

// idleMax is how long a connection may have been idle and is used unseen: a
// busy one spares the look, and one that breaks meanwhile breaks under a call.
const idleMax = 100 * time.Millisecond

// lookMax bounds the look at an idle connection: what the server has said
// before it went is here already, and a read that finds nothing is the rule.
const lookMax = 100 * time.Microsecond

// alive says whether an idle connection is not known to be dead: the server
// ends one with a message or by closing it. What is never sent on a dead
// connection need not be called unknown.
func (s *Session) alive() bool {
	conn := s.conn.PgConn()
	// Not CheckConn: its context would meet the last call's deadline, which may have passed.
	if conn.Conn().SetDeadline(time.Now().Add(lookMax)) != nil {
		return false
	}
	var err error
	for err == nil { // a crash is told of by a warning before the connection is closed
		_, err = conn.ReceiveMessage(context.Background())
	}
	if conn.IsClosed() || conn.Conn().SetDeadline(time.Time{}) != nil {
		return false
	}
	return pgconn.Timeout(err) || errors.Is(err, os.ErrDeadlineExceeded)
}

// connect opens the connection and makes it ready. Whatever goes wrong,
// nothing was asked of the store yet.
func (s *Session) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	config := s.store.config.Copy()
	var connected atomic.Bool
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected.Load() {
			return nil, errNoCancel
		}
		return dial(ctx, network, address)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return unasked("connect", err)
	}
	connected.Store(true)
	s.conn = conn
	clear(s.prepared)
	if err := s.warm(ctx); err != nil {
		s.abandon()
		return unasked("warm a session up", err)
	}
	if err := s.prepare(ctx); err != nil {
		s.abandon()
		return unasked("prepare decisions", err)
	}
	s.usedAt = time.Now()
	return nil
}

// prepare prepares the calls: later it would cost the first caller a round trip.
func (s *Session) prepare(ctx context.Context) error {
	for i, sql := range []string{takeSQL, takeDurableSQL, takeNewSQL, takeNewDurableSQL, decideSQL} {
		statement, err := s.conn.PgConn().Prepare(ctx, fmt.Sprintf("ration_%d", i), sql, nil)
		if err != nil {
			return err
		}
		s.prepared[sql] = statement
	}
	return nil
}

// abandon lets go of a connection whose state is not known. The server ends
// the backend when it notices.
func (s *Session) abandon() {
	if s.conn != nil {
		_ = s.conn.PgConn().Conn().Close() // it is broken or late already
		s.conn = nil
	}
}
