package pgstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// as gives the owner's session another role. What the owner may do as nobody
// but himself is not possible in it.
func (b *bench) as(role string) *pgx.Conn {
	b.Helper()
	conn := b.connect(b.db.OwnerURL())
	if _, err := conn.Exec(b.Context(), "SET ROLE "+role); err != nil {
		b.Fatal(err)
	}
	return conn
}

// mayNot runs statements that have to end for lack of a privilege.
func mayNot(b *bench, conn *pgx.Conn, role string, statements ...string) {
	b.Helper()
	for _, statement := range statements {
		if _, err := conn.Exec(b.Context(), statement); sqlState(err) != "42501" {
			b.Errorf("%s: %s: %v, want it to be forbidden", role, statement, err)
		}
	}
}

// may runs statements that have to succeed.
func may(b *bench, conn *pgx.Conn, role string, statements ...string) {
	b.Helper()
	for _, statement := range statements {
		if _, err := conn.Exec(b.Context(), statement); err != nil {
			b.Errorf("%s: %s: %v", role, statement, err)
		}
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	of := b.install("p", 0, shape{capacity: 10}, 0)
	b.decide(b.session(), b.batch(of, 1))
	var writes []string
	for _, table := range []string{
		"schema_version", "policy_set", "incarnation_marker", "state_loss", "policy_version", "policy",
		"bucket_fast", "bucket_durable", "audit",
	} {
		writes = append(writes, "DELETE FROM ration."+table, "TRUNCATE ration."+table)
	}
	writes = append(writes, "UPDATE ration.audit SET reason = ''", "UPDATE ration.bucket_fast SET balance = 0", "UPDATE ration.policy_set SET generation = 7",
		"INSERT INTO ration.audit (at, actor, action, reason, request_id) VALUES (1, 'x', 'x', '', '')",
		"INSERT INTO ration.bucket_fast VALUES (1, 1, gen_random_uuid(), 0, 1, 1, 0)",
		"SELECT ration.use_test_clock_v1()", "CREATE TABLE ration.mine ()", "DROP FUNCTION ration.take_v1")
	hidden := []string{"SELECT FROM ration.bucket_fast", "SELECT FROM ration.bucket_durable", "SELECT FROM ration.incarnation_marker"}
	reads := []string{
		"SELECT FROM ration.schema_version", "SELECT FROM ration.policy_set", "SELECT FROM ration.policy",
		"SELECT FROM ration.policy_version", "SELECT FROM ration.audit", "SELECT FROM ration.state_loss", "SELECT * FROM ration.bucket_now",
		`SELECT ration.bucket_key('p', '{"account": "A"}')`,
	}
	var decisions []string
	for function, hold := range decisionFunctions {
		decisions = append(decisions, "SELECT ration."+function+"(0, 2, '{1}', '{"+key+"}', '{1}', '{1}'"+hold+")")
	}
	upkeep := []string{"SELECT ration.clean_v1(false, 0, NULL, 10)", "SELECT ration.recover_v1()"}
	changes := []string{putSQL(map[string]string{"p_expected": "7"})}

	service := b.service()
	may(b, service, "ration_service", reads...)
	may(b, service, "ration_service", decisions...)
	may(b, service, "ration_service", upkeep...)
	may(b, service, "ration_service", changes...)
	mayNot(b, service, "ration_service", hidden...)
	mayNot(b, service, "ration_service", writes...)

	operator := b.as("ration_operator")
	may(b, operator, "ration_operator", reads...)
	may(b, operator, "ration_operator", upkeep...)
	mayNot(b, operator, "ration_operator", decisions...)
	mayNot(b, operator, "ration_operator", changes...)
	mayNot(b, operator, "ration_operator", hidden...)
	mayNot(b, operator, "ration_operator", writes...)

	reader := b.as("ration_reader")
	may(b, reader, "ration_reader", reads...)
	for _, statements := range [][]string{changes, decisions, upkeep, hidden, writes} {
		mayNot(b, reader, "ration_reader", statements...)
	}

	// A role of nobody's: the first word that it may not say is the schema's name.
	nobody := "nobody_" + b.db.Name
	b.exec("CREATE ROLE " + nobody)
	t.Cleanup(func() { b.exec("DROP ROLE " + nobody) })
	stranger := b.as(nobody)
	for _, statements := range [][]string{reads, changes, decisions, upkeep, hidden, writes} {
		mayNot(b, stranger, "nobody", statements...)
	}
	if granted := scalar[string](b, `SELECT coalesce(string_agg(p.proname, ', '), '') FROM pg_proc AS p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
		WHERE p.pronamespace = 'ration'::regnamespace AND a.grantee = 0`); granted != "" {
		t.Errorf("everybody may call %s", granted)
	}
}

// Functions that run with the owner's rights look for nothing where a caller
// may put something of his own.
func TestDefinersHaveAFixedSearchPath(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	loose := scalar[string](b, `SELECT coalesce(string_agg(p.proname, ', '), '') FROM pg_proc AS p
		WHERE p.pronamespace = 'ration'::regnamespace AND p.prosecdef
		  AND NOT coalesce(p.proconfig, '{}') @> ARRAY['search_path=pg_catalog, pg_temp']`)
	if loose != "" {
		t.Errorf("no fixed search_path: %s", loose)
	}
}

func TestBucketNow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	// The view reads the database's own clock, so the tests' clock is set by it.
	now := scalar[int64](b, "SELECT ration.clock_v1()")
	install := func(id string, expected int, s shape) *policy.Installed {
		installed, _, err := b.store.PutAt(context.Background(), policy.Put{ID: id, Expected: expected, Change: s.change(t), Author: policy.Author{Actor: "test"}}, now-hour)
		if err != nil {
			t.Fatal(err)
		}
		return installed
	}
	fast := install("fast", 0, shape{capacity: 40, seconds: "3600"}) // a token an hour: the test's own time earns nothing
	durable := install("durable", 0, shape{capacity: 40, seconds: "3600", durability: policy.Durable})
	for _, of := range []*policy.Installed{fast, durable} {
		batch := b.batch(of, 1)
		batch.NowMicros = now
		batch.Asks[0].Count = 5
		b.decide(session, batch)
	}
	rows := func() string {
		return scalar[string](b, `SELECT string_agg(format('%s (%s) %s->%s %s/%s %s', n.policy, n.durability, n.settled_version, n.policy_version, n.tokens, n.capacity,
			round(extract(epoch FROM n.full_at - to_timestamp($1 / 1000000.0)) * 1000) ), '; ' ORDER BY n.policy) FROM ration.bucket_now AS n`, now)
	}
	if got := rows(); got != "durable (durable) 1->1 35/40 18000000; fast (fast) 1->1 35/40 18000000" {
		t.Errorf("five hours from full: %s", got)
	}
	// Under another version the view shows what a decision would find.
	install("fast", 1, shape{capacity: 10, seconds: "3600"})
	got := rows()
	if !strings.Contains(got, "fast (fast) 1->2 10/10") {
		t.Errorf("after a reduction: %s", got)
	}
	of := install("fast", 2, shape{capacity: 100, seconds: "7200"})
	batch := b.batch(of, 1)
	batch.NowMicros = now
	batch.Asks[0].Count = 0
	peeked := b.decide(session, batch).Asks[0]
	want := fmt.Sprintf("fast (fast) 1->3 %d/100 %d", peeked.Remaining, peeked.ResetAfterMicros/1000)
	if got := rows(); !strings.Contains(got, want) {
		t.Errorf("after a raise: %s, want %s as a peek says", got, want)
	}
	if got := scalar[string](b, "SELECT n.policy FROM ration.bucket_now AS n WHERE n.key = $1::text::uuid", fmt.Sprintf("%x", batch.Asks[0].Key)); got != "fast" {
		t.Errorf("found %s by its key", got)
	}
}

// However deep one key is in debt, the views show all others.
func TestViewsShowTheDeepestDebt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	deep := b.install("deep", 0, shape{capacity: 146_230}, 0) // as large as one that earns a token a year may be
	b.claim(b.session(), second, operating("x", check(deep, 1, 1)), claim(check(deep, 2, 1)))
	if settled := b.settle(second, "x", policy.CostMax); !settled.Parts[0].Clamped {
		t.Errorf("%+v", settled)
	}
	got := scalar[string](b, "SELECT string_agg(format('%s %s', n.tokens, isfinite(n.full_at)), '; ' ORDER BY n.tokens) FROM ration.bucket_now AS n")
	if got != "0 f; 146230 t" { // by now the other has earned what it spent
		t.Errorf("one in debt and one that is not: %s", got)
	}
	for wait, want := range map[string]bool{"9223372036854775806": true, "9223372036854775807": false} {
		if got := scalar[bool](b, "SELECT isfinite(ration.instant_v1(1, "+wait+"))"); got != want {
			t.Errorf("a wait of %s ends in time: %t", wait, got)
		}
	}
}
