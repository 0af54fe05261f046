// Package doctor examines the database that Ration works on for what would
// bite in production: each finding comes with its mend.
//
// It only reads, on two or three connections of its own, and waits for no
// lock. What the role that it connects as may not see is a finding too.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Severity says how urgent a finding is.
type Severity string

// The severities, the least first.
const (
	Note    Severity = "note"    // good to know
	Warning Severity = "warning" // costs speed, or safety when something else happens
	Fault   Severity = "fault"   // decisions, limits or the audit are at risk as it stands
)

var severities = []Severity{Note, Warning, Fault}

// Rank orders severities: a greater one is worse, 0 is none.
func (s Severity) Rank() int { return slices.Index(severities, s) + 1 }

// Finding is one thing that was found.
type Finding struct {
	Check    string   `json:"check"` // the name of the check that found it
	Severity Severity `json:"severity"`
	Found    string   `json:"found"`
	Mend     string   `json:"mend"` // what to do, mostly a statement for psql; "" where nothing is to be done
}

// Report is what an examination came to.
type Report struct {
	Checks   []string  `json:"checks"`   // names of the checks that were made
	Findings []Finding `json:"findings"` // the worst first
}

// Worst is the greatest severity of any finding; "" without any.
func (r *Report) Worst() Severity {
	if len(r.Findings) == 0 {
		return ""
	}
	return r.Findings[0].Severity
}

// Config is what an examination compares the database with.
type Config struct {
	URL        string // connection string of PostgreSQL, as the service has it
	Migrations uint   // the newest migration that this program knows

	Connections int // that one instance may open
	Instances   int // that are to run; those that do are counted if they are more

	// TransactionMax is how old a transaction may be: while it runs, no row
	// version that decisions left behind since can be removed. 0: a minute.
	TransactionMax time.Duration

	Clock func() time.Time // this machine's; nil: time.Now
}

// connectTimeout bounds each connection, lookTimeout each statement: the
// doctor is called when something is wrong already.
const (
	connectTimeout = 10 * time.Second
	lookTimeout    = 10 * time.Second
)

// examination is one under way.
type examination struct {
	Config

	conn     *pgx.Conn
	check    string // that is being made
	findings []Finding
}

// check is one thing to look at.
type check struct {
	name   string
	look   func(ctx context.Context, e *examination) error
	schema bool // reads what only the schema that this program knows has
}

// checks are made in this order.
func checks() []check {
	return slices.Concat(schemaChecks(), horizonChecks(), vacuumChecks(), storageChecks(), durabilityChecks(),
		sessionChecks(), connectionChecks(), roleChecks(), clockChecks(), auditChecks())
}

// Examine makes every check. An error means that it could not look at all, or
// not to the end.
func Examine(ctx context.Context, config Config) (*Report, error) {
	if config.TransactionMax == 0 {
		config.TransactionMax = time.Minute
	}
	if config.Clock == nil {
		config.Clock = time.Now
	}
	e := &examination{Config: config, findings: []Finding{}} // none is [], not null
	var err error
	if e.conn, err = e.connect(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = e.conn.Close(context.WithoutCancel(ctx)) }() // it has only read
	report := &Report{}
	for _, c := range checks() {
		if c.schema && e.hasFault("schema") {
			continue // the findings would be about what is not there
		}
		e.check = c.name
		if !slices.Contains(report.Checks, c.name) {
			report.Checks = append(report.Checks, c.name)
		}
		if err := c.look(ctx, e); err != nil && !e.unseen(err) {
			return nil, fmt.Errorf("check %s: %w", c.name, err)
		}
	}
	report.Findings = e.findings
	slices.SortStableFunc(report.Findings, func(a, b Finding) int { return b.Severity.Rank() - a.Severity.Rank() })
	return report, nil
}

// connect makes a connection. Its statements go by the simple protocol, in one
// message each: that passes every pooler.
func (e *examination) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(e.URL)
	if err != nil {
		return nil, fmt.Errorf("read the database's URL: %w", err)
	}
	config.ConnectTimeout = connectTimeout
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	// The role's own bound is made for decisions.
	if _, err := conn.Exec(ctx, fmt.Sprintf("SET statement_timeout = %d", lookTimeout.Milliseconds())); err != nil {
		return nil, errors.Join(fmt.Errorf("set the bound of statements: %w", err), conn.Close(ctx))
	}
	return conn, nil
}

// unseen notes what the role may not look at, and what does not end in time.
// Any other error ends the examination.
func (e *examination) unseen(err error) bool {
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code != "42501" && server.Code != "57014" {
		return false
	}
	e.note(Warning, "could not be looked at: "+server.Message, "run it as the owner of the schema, or as a role that was granted pg_monitor and ration_operator")
	return true
}

// note adds a finding of the check that is being made.
func (e *examination) note(severity Severity, found, mend string) {
	e.findings = append(e.findings, Finding{Check: e.check, Severity: severity, Found: found, Mend: mend})
}

// hasFault says whether a check has found a fault.
func (e *examination) hasFault(check string) bool {
	return slices.ContainsFunc(e.findings, func(f Finding) bool { return f.Check == check && f.Severity == Fault })
}

// reading makes a check of a query: each row is a finding, its severity, what
// was found, and its mend. It may name @transaction_max.
func reading(name string, sql string) check {
	return check{name: name, look: func(ctx context.Context, e *examination) error { return e.read(ctx, sql) }}
}

// inSchema is a check that needs the schema that this program knows.
func inSchema(c check) check {
	c.schema = true
	return c
}

func (e *examination) read(ctx context.Context, sql string) error {
	sql = strings.ReplaceAll(sql, "@transaction_max", fmt.Sprintf("(interval '1 second' * %f)", e.TransactionMax.Seconds()))
	rows, err := e.conn.Query(ctx, sql)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f Finding, err error) {
		return f, row.Scan(&f.Severity, &f.Found, &f.Mend)
	})
	for _, f := range found {
		e.note(f.Severity, f.Found, f.Mend)
	}
	return err
}
