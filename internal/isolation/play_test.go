package isolation_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rationhq/ration/internal/dbtest"
)

const (
	// stepMax bounds a step, and how long one may wait for another.
	stepMax = 30 * time.Second

	// lookPause is between two looks at whether a step waits for a lock.
	lookPause = 2 * time.Millisecond
)

// session is one connection and the step that it is at.
type session struct {
	conn    *pgconn.PgConn
	running string        // the step's name, "" when there is none
	done    chan []string // receives its outcome, in lines
}

// play is one order of a script on its way.
type play struct {
	*testing.T

	context  context.Context
	script   *script
	sessions map[string]*session
	waiting  []*session // in the order in which they began to
	observer *pgx.Conn
	conns    []*pgx.Conn // all of them
	out      strings.Builder
}

// playOrder plays one order and gives what came of it.
func playOrder(t *testing.T, db *dbtest.DB, s *script, durability string, order []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepMax)
	defer cancel()
	p := &play{T: t, context: ctx, script: s, sessions: make(map[string]*session)}
	defer p.close()
	p.observer = p.connect(db.OwnerURL(), durability)
	for _, sql := range append([]string{"SELECT empty()"}, s.setup...) {
		if _, err := p.observer.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	for _, actor := range s.sessions {
		url := db.ServiceURL()
		if actor.owner {
			url = db.OwnerURL()
		}
		p.sessions[actor.name] = &session{conn: p.connect(url, durability).PgConn(), done: make(chan []string, 1)}
	}
	fmt.Fprintf(&p.out, "order: %s\n", strings.Join(order, " "))
	for _, name := range order {
		p.begin(name)
	}
	for len(p.waiting) > 0 {
		p.finish(p.waiting[0])
	}
	return p.out.String()
}

// close ends the connections: a server has few, and a script many orders.
func (p *play) close() {
	for _, conn := range p.conns {
		_ = conn.Close(context.Background()) // the play may have broken it
	}
}

// connect opens a connection that ends with the play. Its steps are bounded
// by the play, unless the script says otherwise. The session begins so: a SET
// would itself be under the role's bound, which ends it on a busy machine.
func (p *play) connect(url, durability string) *pgx.Conn {
	p.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		p.Fatal(err)
	}
	maps.Copy(config.RuntimeParams, map[string]string{
		"statement_timeout": "0", "lock_timeout": "0", "script.durability": durability,
	})
	conn, err := pgx.ConnectConfig(p.context, config)
	if err != nil {
		p.Fatal(err)
	}
	p.conns = append(p.conns, conn)
	return conn
}

// begin starts a step and waits until it has ended or waits for a lock; then
// it looks which of the waiting have come further by it.
func (p *play) begin(name string) {
	p.Helper()
	step := p.script.steps[name]
	s := p.sessions[step.session]
	if s.running != "" {
		p.finish(s)
	}
	s.running = name
	go func() { s.done <- run(p.context, s.conn, step.sql) }()
	if !p.settle(s) {
		fmt.Fprintf(&p.out, "%s: waits\n", name)
		p.waiting = append(p.waiting, s)
	}
	for _, s := range append([]*session(nil), p.waiting...) {
		p.settle(s)
	}
}

// settle waits until a session's step has ended or waits for a lock, and says
// whether it has ended.
func (p *play) settle(s *session) bool {
	p.Helper()
	for {
		select {
		case lines := <-s.done:
			p.ended(s, lines)
			return true
		case <-time.After(lookPause):
		}
		var blocked bool
		err := p.observer.QueryRow(p.context, "SELECT cardinality(pg_blocking_pids($1)) > 0", s.conn.PID()).Scan(&blocked)
		if err != nil {
			p.Fatalf("look at %s: %v", s.running, err)
		}
		if blocked {
			return false
		}
	}
}

// finish waits for the end of a step that waits.
func (p *play) finish(s *session) {
	p.Helper()
	p.ended(s, <-s.done) // bounded by the play's context
}

// ended prints what a step came to.
func (p *play) ended(s *session, lines []string) {
	for _, line := range lines {
		fmt.Fprintf(&p.out, "%s: %s\n", s.running, line)
	}
	s.running = ""
	for i := range p.waiting {
		if p.waiting[i] == s {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			return
		}
	}
}

// run runs a step and gives its rows, its command where it has none, or its
// error.
func run(ctx context.Context, conn *pgconn.PgConn, sql string) []string {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		return []string{"ERROR " + server.Code + " " + server.Message}
	}
	if err != nil {
		return []string{"broke off: " + err.Error()}
	}
	var lines []string
	for _, result := range results {
		for _, row := range result.Rows {
			lines = append(lines, strings.TrimSpace(strings.ReplaceAll(string(row[0]), "\n", "; ")))
		}
		if len(result.FieldDescriptions) == 0 {
			lines = append(lines, result.CommandTag.String())
		}
	}
	return lines
}
