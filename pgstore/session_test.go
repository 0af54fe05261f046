package pgstore_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

func TestSessionConnectsAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	of := b.install("p", 0, shape{capacity: 10}, 0)
	batch := b.batch(of, 1)
	b.decide(session, batch)
	for _, end := range []string{"SELECT pg_terminate_backend($1)", "SELECT pg_cancel_backend($1)"} {
		before := session.Conn().PgConn().PID()
		b.exec(end, before)
		if strings.Contains(end, "terminate") {
			// The first call learns of it, and cannot know that nothing was charged if it was sent.
			session.Work()
			if _, err := through(session, batch); err == nil {
				t.Error("a terminated session answers")
			} else if fault := faultOf(t, err); fault != policy.StoreUnsure && fault != policy.StoreUnreachable {
				t.Errorf("%v", err)
			}
		}
		if answers := b.decide(session, batch); answers.Asks[0].Admitted != 1 {
			t.Errorf("%+v", answers)
		}
		if after := session.Conn().PgConn().PID(); (after != before) != strings.Contains(end, "terminate") {
			t.Errorf("%s: backend %d, then %d", end, before, after)
		}
	}
	b.expect(session, of, 1, second, 1, 6)
}

// A connection that died while it was idle is replaced before anything is sent.
func TestADeadIdleConnectionIsNotUsed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	of := b.install("p", 0, shape{capacity: 10}, 0)
	b.expect(session, of, 1, second, 1, 9)
	alive := session.Conn().PgConn().PID()
	session.Rest()
	b.expect(session, of, 1, second, 1, 8)
	if now := session.Conn().PgConn().PID(); now != alive {
		t.Errorf("backend %d became %d while it was alive", alive, now)
	}
	b.exec("SELECT pg_terminate_backend($1, 10000)", alive)
	session.Rest()
	b.expect(session, of, 1, second, 1, 7)
}

// What a new session tries out is taken back, whatever policies there are.
func TestWarmingUpLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, s := range algorithms(1) {
		if err := b.session().Connect(t.Context()); err != nil {
			t.Errorf("before %s: %v", name, err)
		}
		b.install(name, 0, s, 0)
	}
	if err := b.session().Connect(t.Context()); err != nil {
		t.Error(err)
	}
	if rows := b.stored(); rows != "" {
		t.Errorf("left:\n%s", rows)
	}
}

// A call without an answer is left alone: the server is not asked to cancel
// it, and what it charges is charged once.
func TestAbandonedCall(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	of := b.install("p", 0, shape{capacity: 10}, 0)
	batch := b.batch(of, 1)
	b.decide(b.session(), batch)
	hasty, err := pgstore.Open(t.Context(), pgstore.Config{URL: b.db.ServiceURL(), CallTimeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hasty.Close)
	session := hasty.NewSession()
	t.Cleanup(session.Close)
	b.decide(session, b.batch(of, 2)) // warm

	holder := b.connect(b.db.OwnerURL())
	if _, err := holder.Exec(t.Context(), fmt.Sprintf("BEGIN; SELECT FROM ration.bucket_fast WHERE key = '%x' FOR UPDATE", batch.Asks[0].Key)); err != nil {
		t.Fatal(err)
	}
	pid := session.Conn().PgConn().PID()
	var answers policy.Answers
	if err := session.Take(t.Context(), batch, &answers); err == nil || faultOf(t, err) != policy.StoreUnsure {
		t.Fatalf("a call without an answer: %v", err)
	}
	if session.Conn() != nil {
		t.Error("the connection is kept, with an answer on its way to somebody else")
	}
	const waits = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND state = 'active' AND wait_event_type = 'Lock'"
	if n := scalar[int](b, waits, pid); n != 1 {
		t.Error("the server was asked to cancel the call")
	}
	b.decide(session, b.batch(of, 2)) // the lane goes on meanwhile

	if _, err := holder.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	attempt(t, "the abandoned backend ends", func() bool {
		return scalar[int](b, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1", pid) == 0
	})
	b.expect(session, of, 1, second, 1, 7)
}

// Functions are replaced while sessions have them prepared and compiled.
func TestFunctionsReplacedUnderSessions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	of := b.install("p", 0, shape{capacity: 10}, 0)
	session := b.session()
	batch := b.batch(of, 1)
	b.decide(session, batch)
	source, err := os.ReadFile("../sql/functions/take_v1.sql")
	if err != nil {
		t.Fatal(err)
	}
	// The rights go with a dropped function; a migration grants them anew.
	anew := "DROP FUNCTION ration.take_v1; " + string(source) + "; GRANT EXECUTE ON FUNCTION ration.take_v1 TO ration_service"
	more := strings.Replace(anew, "OUT o_reset_after bigint[])", "OUT o_reset_after bigint[], OUT o_more int)", 1)
	if more == anew {
		t.Fatal("nothing was added to the results")
	}
	remaining := int64(9)
	for _, c := range []struct{ name, sql string }{
		{"replaced", string(source)}, {"dropped and made anew", anew}, {"one result more", more}, {"and less again", anew},
	} {
		b.exec(c.sql)
		remaining--
		if answers := b.decide(session, batch); answers.Asks[0].Remaining != remaining {
			t.Errorf("%s: %+v, want %d left: each call charges once", c.name, answers, remaining)
		}
	}
	// The statement itself is gone, as after DISCARD ALL.
	if _, err := session.Conn().Exec(t.Context(), "DEALLOCATE ALL"); err != nil {
		t.Fatal(err)
	}
	b.expect(session, of, 1, second, 1, remaining-1)
	// A function that is not there at all is no reason to try for ever.
	b.exec("DROP FUNCTION ration.take_v1")
	var answers policy.Answers
	if err := session.Take(t.Context(), batch, &answers); err == nil || faultOf(t, err) != policy.StoreFaulty {
		t.Errorf("without the function: %v", err)
	}
}

func TestOpenRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct{ name, sql, complaint string }{
		{"a newer minor", "UPDATE ration.schema_version SET minor = 7", ""},
		{"another major", "UPDATE ration.schema_version SET major = 2", "version 2.7"},
		{"an older major", "UPDATE ration.schema_version SET major = 0", "version 0.7"},
		{"an older minor", "UPDATE ration.schema_version SET major = 1, minor = 1", "version 1.1"},
		{"this one again", "UPDATE ration.schema_version SET minor = 2", ""},
		{"no settings", fmt.Sprintf("ALTER ROLE ration_service IN DATABASE %s RESET ALL", pgx.Identifier{b.db.Name}.Sanitize()), "configure_roles_v1"},
		{"settings again", "SELECT ration.configure_roles_v1()", ""},
	} {
		b.exec(c.sql)
		store, err := pgstore.Open(t.Context(), pgstore.Config{URL: b.db.ServiceURL(), CallTimeout: callTimeout})
		if err == nil {
			store.Close()
		}
		if (err == nil) != (c.complaint == "") || err != nil && !strings.Contains(err.Error(), c.complaint) {
			t.Errorf("%s: %v, want %q", c.name, err, c.complaint)
		}
	}
	// As after the first migration alone.
	b.exec(fmt.Sprintf("ALTER ROLE ration_service IN DATABASE %s RESET ALL; DROP FUNCTION ration.configure_roles_v1", pgx.Identifier{b.db.Name}.Sanitize()))
	if _, err := pgstore.Open(t.Context(), pgstore.Config{URL: b.db.OwnerURL()}); err == nil || !strings.Contains(err.Error(), "ration migrate up") {
		t.Errorf("a database that is migrated in part: %v", err)
	}
	b.exec("REVOKE ALL ON SCHEMA ration FROM ration_service") // as long as the last migration has not granted it
	if _, err := pgstore.Open(t.Context(), pgstore.Config{URL: b.db.ServiceURL()}); err == nil || !strings.Contains(err.Error(), "ration migrate up") {
		t.Errorf("a schema that the service was not let into yet: %v", err)
	}
	if _, err := pgstore.Open(t.Context(), pgstore.Config{URL: dbtest.Empty(t).OwnerURL()}); err == nil || !strings.Contains(err.Error(), "ration migrate up") {
		t.Errorf("an empty database: %v", err)
	}
	for _, url := range []string{"postgres://%zz", "host=" + t.TempDir() + " user=nobody"} {
		if _, err := pgstore.Open(t.Context(), pgstore.Config{URL: url}); err == nil {
			t.Errorf("%s was opened", url)
		}
	}
}

// Whoever the program connects as, its sessions begin as the service's do.
func TestSessionsOfAnotherRole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.exec("SELECT ration.configure_roles_v1()")
	b.setForService("statement_timeout", "123ms")
	of := b.install("p", 0, shape{capacity: 10}, 0)
	for _, url := range []string{b.db.ServiceURL(), b.db.OwnerURL()} {
		store, err := pgstore.Open(t.Context(), pgstore.Config{URL: url, CallTimeout: callTimeout})
		if err != nil {
			t.Fatal(err)
		}
		session := store.NewSession()
		_, err = through(session, b.batch(of, 1))
		var settings string
		if err == nil {
			err = session.Conn().QueryRow(context.Background(), `SELECT concat_ws(' ', current_setting('statement_timeout'), current_setting('lock_timeout'),
				current_setting('default_transaction_isolation'), current_setting('idle_in_transaction_session_timeout'))`).Scan(&settings)
		}
		if err != nil || settings != "123ms 40ms read committed 10s" {
			t.Errorf("%s: %q, %v", url, settings, err)
		}
		session.Close()
		store.Close()
	}
}
