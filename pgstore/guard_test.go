package pgstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// decisionFunctions are the four that decide, with what stands between counts
// and p_now in their calls.
var decisionFunctions = map[string]string{
	"take_v1": "", "take_durable_v1": "", "take_new_v1": ", 'wait'", "take_new_durable_v1": ", 'wait'",
}

// key is a literal of an element of a keys array.
const key = "00000000-0000-0000-0000-00000000000a"

// No argument is taken for something else, and NULL never for nothing to pay.
func TestMalformedCallsAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install("fast", 0, shape{capacity: 10}, 0)
	b.install("durable", 0, shape{capacity: 10, durability: policy.Durable}, 0)
	conn := b.service()
	const policies, keys, costs, counts = "'{1}'", "'{" + key + "}'", "'{1}'", "'{1}'"
	many := func(element string, n int) string { return "'{" + strings.Repeat(element+",", n-1) + element + "}'" }
	numbers := "(SELECT array_agg(lpad(i::text, 32, '0')::uuid) FROM generate_series(1, %d) AS i)"
	for name, arguments := range map[string]string{
		"no element":            "0, 3, '{}', '{}', '{}', '{}'",
		"1,025 elements":        "0, 3, " + strings.Join([]string{many("1", 1025), fmt.Sprintf(numbers, 1025), many("1", 1025), many("1", 1025)}, ", "),
		"fewer policies":        "0, 3, '{}', " + keys + ", " + costs + ", " + counts,
		"more policies":         "0, 3, '{1,1}', " + keys + ", " + costs + ", " + counts,
		"fewer keys":            "0, 3, '{1,1}', " + keys + ", '{1,1}', '{1,1}'",
		"fewer costs":           "0, 3, " + policies + ", " + keys + ", '{}', " + counts,
		"more costs":            "0, 3, " + policies + ", " + keys + ", '{1,1}', " + counts,
		"fewer counts":          "0, 3, " + policies + ", " + keys + ", " + costs + ", '{}'",
		"more counts":           "0, 3, " + policies + ", " + keys + ", " + costs + ", '{1,1}'",
		"cost 0":                "0, 3, " + policies + ", " + keys + ", '{0}', " + counts,
		"cost -1":               "0, 3, " + policies + ", " + keys + ", '{-1}', " + counts,
		"least cost":            "0, 3, " + policies + ", " + keys + ", '{-9223372036854775808}', " + counts,
		"count -1":              "0, 3, " + policies + ", " + keys + ", " + costs + ", '{-1}'",
		"a NULL policy":         "0, 3, '{NULL}', " + keys + ", " + costs + ", " + counts,
		"a NULL key":            "0, 3, " + policies + ", '{NULL}', " + costs + ", " + counts,
		"a NULL cost":           "0, 3, " + policies + ", " + keys + ", '{NULL}', " + counts,
		"a NULL count":          "0, 3, " + policies + ", " + keys + ", " + costs + ", '{NULL}'",
		"NULL for policies":     "0, 3, NULL, " + keys + ", " + costs + ", " + counts,
		"NULL for keys":         "0, 3, " + policies + ", NULL, " + costs + ", " + counts,
		"NULL for costs":        "0, 3, " + policies + ", " + keys + ", NULL, " + counts,
		"NULL for counts":       "0, 3, " + policies + ", " + keys + ", " + costs + ", NULL",
		"NULL for all":          "0, 3" + strings.Repeat(", NULL", 4),
		"no generation":         "0, NULL, " + policies + ", " + keys + ", " + costs + ", " + counts,
		"costs counted from 2":  "0, 3, " + policies + ", " + keys + ", '[2:2]={1}', " + counts,
		"counts counted from 0": "0, 3, " + policies + ", " + keys + ", " + costs + ", '[0:0]={1}'",
	} {
		for function, hold := range decisionFunctions {
			arguments := arguments
			if strings.Contains(function, "durable") {
				arguments = strings.Replace(arguments, "'{1}'", "'{2}'", 1)
			}
			refused(b, conn, "RN004", name, "SELECT ration."+function+"("+arguments+hold+")")
		}
	}
	for name, tail := range map[string]string{
		"an unknown hold": "'{1}', '{" + key + "}', '{1}', '{1}', 'jump'",
		"no hold":         "'{1}', '{" + key + "}', '{1}', '{1}', NULL",
		"two alone":       "'{1,1}', '{" + key + ",00000000-0000-0000-0000-00000000000b}', '{1,1}', '{1,1}', 'alone'",
		"one key twice":   "'{1,1}', '{" + key + "," + key + "}', '{1,1}', '{1,1}', 'wait'",
	} {
		refused(b, conn, "RN004", name, "SELECT ration.take_new_v1(0, 3, "+tail+")")
	}
	for _, rows := range []string{"0", "10001", "NULL"} {
		refused(b, conn, "RN004", rows+" rows", "SELECT ration.clean_v1(false, 0, NULL, "+rows+")")
	}
	if rows := b.stored(); rows != "" {
		t.Errorf("refused calls wrote\n%s", rows)
	}
}

// refused runs a statement that has to end with a SQLSTATE.
func refused(b *bench, conn *pgx.Conn, state, name, sql string) {
	b.Helper()
	if _, err := conn.Exec(b.Context(), sql); sqlState(err) != state {
		b.Errorf("%s: %.200s\nended with %v, want %s", name, sql, err, state)
	}
}

func TestStricterIsolationIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install("fast", 0, shape{capacity: 10}, 0)
	conn := b.service()
	for _, level := range []string{"REPEATABLE READ", "SERIALIZABLE"} {
		for function, hold := range decisionFunctions {
			begun(b, conn, level, func(tx *pgx.Conn) {
				refused(b, tx, "RN001", level, "SELECT ration."+function+"(0, 2, '{1}', '{"+key+"}', '{1}', '{1}'"+hold+")")
			})
		}
	}
	begun(b, conn, "READ COMMITTED", func(tx *pgx.Conn) {
		if _, err := tx.Exec(t.Context(), "SELECT ration.take_new_v1(0, 2, '{1}', '{"+key+"}', '{1}', '{1}')"); err != nil {
			t.Errorf("read committed: %v", err)
		}
	})
}

// begun runs work in a transaction of a level and rolls it back.
func begun(b *bench, conn *pgx.Conn, level string, work func(*pgx.Conn)) {
	b.Helper()
	if _, err := conn.Exec(b.Context(), "BEGIN ISOLATION LEVEL "+level); err != nil {
		b.Fatal(err)
	}
	work(conn)
	if _, err := conn.Exec(b.Context(), "ROLLBACK"); err != nil {
		b.Fatal(err)
	}
}

// A database may have a stricter default: the role's own setting wins.
func TestDatabaseDefaultIsolation(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.exec(fmt.Sprintf("ALTER DATABASE %s SET default_transaction_isolation = '%s'", pgx.Identifier{b.db.Name}.Sanitize(), level))
			store := open(t, b.db) // sessions from here on
			of := b.install("fast", 0, shape{capacity: 100}, 0)
			batch := b.batch(of, 1)
			const sessions, asks = 8, 25
			admitted := make(chan int32, sessions*asks)
			failed := make(chan error, sessions)
			for range sessions {
				go func() {
					session := store.NewSession()
					defer session.Close()
					for range asks {
						answers, err := through(session, batch)
						if err != nil {
							failed <- err
							return
						}
						admitted <- answers.Asks[0].Admitted
					}
					failed <- nil
				}()
			}
			for range sessions {
				if err := <-failed; err != nil {
					t.Error(err)
				}
			}
			close(admitted)
			var total int32
			for n := range admitted {
				total += n
			}
			if total != 100 {
				t.Errorf("%d callers admitted, want 100", total)
			}
		})
	}
}

func TestClockOfTheCallerIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install("fast", 0, shape{capacity: 10}, 0)
	b.exec("UPDATE ration.policy_set SET test_clock = false")
	conn := b.service()
	content := string(shape{capacity: 10}.change(t).Spec.JSON())
	calls := map[string]string{
		"clean_v1":   "SELECT ration.clean_v1(false, 0, NULL, 10, 1)",
		"clock_v1":   "SELECT ration.clock_v1(1)",
		"recover_v1": "SELECT ration.recover_v1(1)",
		"put_policy_v1": "SELECT ration.put_policy_v1('late', 0, '" + content +
			"', 1, 31536000000000, 10, 'keep', NULL, 'test', '', '', '', 1)",
	}
	for function, hold := range decisionFunctions {
		calls[function] = "SELECT ration." + function + "(0, 2, '{1}', '{" + key + "}', '{1}', '{1}'" + hold + ", 1)"
	}
	b.exec("TRUNCATE ration.incarnation_marker") // else recover_v1 has no use for a clock
	refused(b, conn, "RN003", "recover_v1", calls["recover_v1"])
	b.exec("INSERT INTO ration.incarnation_marker (incarnation) SELECT incarnation FROM ration.policy_set")
	delete(calls, "recover_v1")
	for function, call := range calls {
		refused(b, conn, "RN003", function, call)
	}
	if _, err := conn.Exec(t.Context(), "SELECT ration.use_test_clock_v1()"); sqlState(err) != "42501" {
		t.Errorf("the service marks a test clock: %v", err)
	}
}

func TestOtherGenerationIsStale(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	for _, durability := range []policy.Durability{policy.Fast, policy.Durable} {
		of := b.install(durability.String(), 0, shape{capacity: 10, durability: durability}, 0)
		b.decide(session, b.batch(of, 1))
		before := b.stored()
		for _, off := range []int64{-1, 1} {
			batch := b.batch(of, 1, 2)
			batch.Generation += off
			var answers policy.Answers
			if err := session.Take(t.Context(), batch, &answers); err != nil || !answers.Stale {
				t.Errorf("take, generation %+d: %+v, %v", off, answers, err)
			}
			for _, hold := range []policy.Hold{policy.HoldWait, policy.HoldSkip, policy.HoldAlone} {
				if err := session.TakeNew(t.Context(), hold, batch, &answers); err != nil || !answers.Stale {
					t.Errorf("take new, %s, generation %+d: %+v, %v", hold, off, answers, err)
				}
			}
		}
		if after := b.stored(); after != before {
			t.Errorf("stale calls left\n%s\nbefore\n%s", after, before)
		}
	}
}

func TestUnknownPolicyIsUndecided(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	of := b.install("fast", 0, shape{capacity: 10}, 0)
	batch := b.batch(of, 1, 2)
	batch.Asks[0].Policy = 77
	var answers policy.Answers
	for _, call := range []func() error{
		func() error { return session.Take(t.Context(), batch, &answers) },
		func() error { return session.TakeNew(t.Context(), policy.HoldWait, batch, &answers) },
	} {
		if err := call(); err != nil || answers.Asks[0].Status != policy.Again {
			t.Errorf("%+v, %v; want the first ask undecided", answers, err)
		}
	}
	if answers.Asks[1].Admitted != 1 {
		t.Errorf("%+v: the neighbour is decided", answers)
	}
	if n := scalar[int](b, "SELECT count(*) FROM ration.bucket_fast"); n != 1 {
		t.Errorf("%d rows, want the neighbour's", n)
	}
}
