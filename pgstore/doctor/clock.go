package doctor

import (
	"context"
	"fmt"
	"time"
)

// Bounds of clocks that agree.
const (
	clockOffsetWarning = time.Second
	clockOffsetFault   = time.Minute
)

func clockChecks() []check {
	return []check{
		{name: "clock", look: lookAtClock},
		// What was written bears the clock of its time: ahead of now, the clock has gone back since.
		inSchema(reading("clock steps", `
			SELECT 'warning', format('the database''s clock has gone back: %s is %s ahead of it. Keys that were used before earn nothing until it is there again',
			                         x.what, date_trunc('milliseconds', interval '1 microsecond' * (x.at - n.now))),
			       'let the clock run on (chrony, never a step); ration bucket rebase sets keys to now'
			FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) AS n (now),
			     LATERAL (SELECT 'the newest row of the audit', max(a.at) FROM (SELECT a.at FROM ration.audit AS a ORDER BY a.id DESC LIMIT 100) AS a
			              UNION ALL SELECT 'the newest policy version', max(v.installed_at) FROM ration.policy_version AS v) AS x (what, at)
			WHERE x.at > n.now + 1000000
			UNION ALL
			SELECT 'fault', 'the database is marked as a test clock: its callers may name their own instant', 'make a new database: there is no way back'
			FROM ration.policy_set AS s WHERE s.test_clock`)),
	}
}

// lookAtClock compares the database's clock with this machine's, as closely as
// the way there allows.
func lookAtClock(ctx context.Context, e *examination) error {
	var database time.Time
	sent := e.Clock()
	if err := e.conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&database); err != nil {
		return err
	}
	received := e.Clock()
	var offset time.Duration // beyond what the way explains
	switch {
	case database.Before(sent):
		offset = database.Sub(sent)
	case database.After(received):
		offset = database.Sub(received)
	}
	severity, how := Warning, "ahead of"
	if offset.Abs() > clockOffsetFault {
		severity = Fault
	}
	if offset < 0 {
		how = "behind"
	}
	if offset.Abs() > clockOffsetWarning {
		e.note(severity, fmt.Sprintf("the database's clock is %s %s this machine's", offset.Abs().Round(time.Millisecond), how),
			"let both follow the same time servers (chrony, systemd-timesyncd); limits go by the database's")
	}
	return nil
}
