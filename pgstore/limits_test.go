package pgstore_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// putLimitSQL is a call of put_policy_v1 that installs a limit which is no
// token bucket.
func putLimitSQL(id string, expected int, limit string, capacity int64) string {
	return putSQL(map[string]string{
		"p_id": "'" + id + "'", "p_expected": fmt.Sprint(expected), "p_n": "1", "p_d": "1", "p_capacity": fmt.Sprint(capacity),
		"p_content": `'{"durability": "fast", "afterLoss": "empty", "limit": ` + limit + `}'`,
	})
}

func TestImpossibleLimitsAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	conn := b.service()
	const most = policy.CostMax // 2^62 - 1
	for name, c := range map[string]struct {
		state, limit string
		capacity     int64
	}{
		"the limit is another":          {"RN005", `{"algorithm": "fixed_window", "limit": 10, "windowSeconds": 60}`, 11},
		"no limit":                      {"RN005", `{"algorithm": "fixed_window", "windowSeconds": 60}`, 10},
		"no window":                     {"RN005", `{"algorithm": "fixed_window", "limit": 10}`, 10},
		"a slot's time for a window":    {"RN005", `{"algorithm": "fixed_window", "limit": 10, "ttlSeconds": 60}`, 10},
		"a window for a slot's time":    {"RN005", `{"algorithm": "concurrency", "limit": 10, "windowSeconds": 60}`, 10},
		"parts of microseconds":         {"RN005", `{"algorithm": "fixed_window", "limit": 10, "windowSeconds": 0.0100005}`, 10},
		"below a millisecond":           {"RN005", `{"algorithm": "fixed_window", "limit": 10, "windowSeconds": 0.000999}`, 10},
		"above 366 days":                {"RN005", `{"algorithm": "concurrency", "limit": 10, "ttlSeconds": 31622400.000001}`, 10},
		"a long log":                    {"RN005", `{"algorithm": "sliding_window_log", "limit": 1001, "windowSeconds": 60}`, 1001},
		"many slots":                    {"RN005", `{"algorithm": "concurrency", "limit": 10001, "ttlSeconds": 60}`, 10_001},
		"a limit of 2^62":               {"RN005", `{"algorithm": "fixed_window", "limit": 4611686018427387904, "windowSeconds": 60}`, most + 1},
		"2^61 tokens times the window":  {"RN005", `{"algorithm": "sliding_window_counter", "limit": 2305843009213693952, "windowSeconds": 0.001}`, 1 << 61},
		"no limit at all":               {"23514", `{"algorithm": "fixed_window", "limit": 0, "windowSeconds": 60}`, 0},
		"an algorithm of another world": {"23514", `{"algorithm": "leaky_bucket", "limit": 10, "windowSeconds": 60}`, 10},
	} {
		refused(b, conn, c.state, name, putLimitSQL("p", 0, c.limit, c.capacity))
	}
	refused(b, conn, "RN005", "a rate", putSQL(map[string]string{
		"p_d": "1", "p_n": "2", "p_capacity": "10",
		"p_content": `'{"durability": "fast", "limit": {"algorithm": "fixed_window", "limit": 10, "windowSeconds": 60}}'`,
	}))
	may(b, conn, "ration_service",
		putLimitSQL("most", 0, `{"algorithm": "fixed_window", "limit": 4611686018427387903, "windowSeconds": 0.001}`, most),
		putLimitSQL("longest", 0, `{"algorithm": "concurrency", "limit": 10000, "ttlSeconds": 31622400}`, 10_000),
		putLimitSQL("counter", 0, `{"algorithm": "sliding_window_counter", "limit": 2305843009213693, "windowSeconds": 0.001, "strict": true}`, 2305843009213693),
		putLimitSQL("log", 0, `{"algorithm": "sliding_window_log", "limit": 1000, "windowSeconds": 1e1}`, 1000))
	got := scalar[string](b, `SELECT string_agg(format('%s %s %s %s', id, algorithm, strict, span), '; ' ORDER BY number) FROM ration.policy`)
	const want = "most fixed_window f 1000; longest concurrency f 31622400000000; counter sliding_window_counter t 1000; log sliding_window_log f 10000000"
	if got != want {
		t.Errorf("installed %s, want %s", got, want)
	}
}

// A limit may change as counts stay comparable; what is counted, and how, may
// not.
func TestAChangeOfTheWindowIsARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	conn := b.service()
	put := func(expected int, limit string, capacity int64) (outcome string) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), putLimitSQL("p", expected, limit, capacity)).Scan(&outcome); err != nil {
			t.Fatal(err)
		}
		return outcome
	}
	for i, c := range []struct {
		expected int
		limit    string
		capacity int64
		outcome  string
	}{
		{0, `{"algorithm": "sliding_window_counter", "limit": 10, "windowSeconds": 60, "strict": false}`, 10, "created"},
		{1, `{"algorithm": "sliding_window_counter", "limit": 10, "windowSeconds": 61, "strict": false}`, 10, "restart"},
		{1, `{"algorithm": "sliding_window_counter", "limit": 10, "windowSeconds": 60, "strict": true}`, 10, "restart"},
		{1, `{"algorithm": "fixed_window", "limit": 10, "windowSeconds": 60, "strict": false}`, 10, "restart"},
		{1, `{"algorithm": "sliding_window_counter", "limit": 20, "windowSeconds": 60.0, "strict": false}`, 20, "changed"},
	} {
		if outcome := put(c.expected, c.limit, c.capacity); outcome != c.outcome {
			t.Errorf("step %d: %s, want %s", i, outcome, c.outcome)
		}
	}
}

// A loss under afterLoss "empty" leaves the limit of windows and logs spent,
// and a change keeps what is spent; slots are not lost.
func TestIdleStatesKeepWhatIsSpent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	conn := b.service()
	for id, limit := range map[string]string{
		"window": `{"algorithm": "fixed_window", "limit": 10, "windowSeconds": 60}`,
		"log":    `{"algorithm": "sliding_window_log", "limit": 10, "windowSeconds": 60}`,
		"slot":   `{"algorithm": "concurrency", "limit": 10, "ttlSeconds": 60}`,
	} {
		may(b, conn, "ration_service", putLimitSQL(id, 0, limit, 10))
	}
	b.exec(`INSERT INTO ration.window_fast SELECT 0, 1, 0, gen_random_uuid(), 0, number, 1 FROM ration.policy WHERE id = 'window'`)
	b.exec(`INSERT INTO ration.log_fast SELECT gen_random_uuid(), 0, number, 1, '{1,1}' FROM ration.policy WHERE id = 'log'`)
	b.exec("UPDATE ration.incarnation_marker SET incarnation = gen_random_uuid()")
	if found := b.recover(second); found != 1 {
		t.Fatalf("%d sessions found the loss, want one", found)
	}
	if rows := scalar[int](b, "SELECT (SELECT count(*) FROM ration.window_fast) + (SELECT count(*) FROM ration.log_fast)"); rows != 0 {
		t.Errorf("%d rows of the life before are left", rows)
	}
	if losses := scalar[string](b, "SELECT format('%s idle, %s empty', policies_idle, policies_empty) FROM ration.state_loss"); losses != "0 idle, 2 empty" {
		t.Errorf("recorded: %s", losses)
	}
	// A raise gives nobody anything, and a reduction takes nothing of what is spent.
	may(b, conn, "ration_service",
		putLimitSQL("window", 1, `{"algorithm": "fixed_window", "limit": 25, "windowSeconds": 60}`, 25),
		putLimitSQL("log", 1, `{"algorithm": "sliding_window_log", "limit": 3, "windowSeconds": 60}`, 3))
	got := scalar[string](b, `SELECT string_agg(format('%s %s of %s at %s', id, idle_balance, capacity, (idle_at - $1) / 1000000), '; ' ORDER BY id)
		FROM ration.policy`, epochMicros)
	if want := "log -7 of 3 at 1; slot 10 of 10 at 0; window 15 of 25 at 1"; got != want {
		t.Errorf("idle states: %s, want %s", got, want)
	}
}

// What the functions of operations, slots and cleaning refuse.
func TestMalformedUpkeepIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	conn := b.service()
	stretches := []string{
		"clean_v1(false, 0, NULL, ", "clean_windows_v1(false, 0, NULL, ", "clean_logs_v1(true, 0, NULL, ",
		"clean_slots_v1(0, NULL, ", "clean_slot_parents_v1(0, NULL, ", "clean_operations_v1(0, ",
	}
	for _, function := range stretches {
		for _, rows := range []string{"0", "10001", "NULL"} {
			refused(b, conn, "RN004", rows+" rows", "SELECT ration."+function+rows+")")
		}
	}
	for _, actual := range []string{"-1", "NULL"} {
		refused(b, conn, "RN004", "settled to "+actual, "SELECT ration.settle_v1(0, '"+key+"', "+actual+")")
	}
	bySlot := []string{"settle_v1(0, '" + key + "', 1", "release_slot_v1(0, '" + key + "'", "renew_slot_v1(0, '" + key + "'"}
	for _, function := range []string{"clean_v1", "clean_windows_v1", "clean_logs_v1"} {
		refused(b, conn, "RN004", "no durability", "SELECT ration."+function+"(NULL, 0, NULL, 1)")
	}
	for _, level := range []string{"REPEATABLE READ", "SERIALIZABLE"} {
		for _, call := range bySlot {
			begun(b, conn, level, func(tx *pgx.Conn) { refused(b, tx, "RN001", level, "SELECT ration."+call+")") })
		}
		for _, function := range stretches {
			begun(b, conn, level, func(tx *pgx.Conn) { refused(b, tx, "RN001", level, "SELECT ration."+function+"1)") })
		}
	}
	b.exec("UPDATE ration.policy_set SET test_clock = false")
	for _, call := range []string{
		bySlot[1] + ", 1)", bySlot[2] + ", 1)", "clean_windows_v1(false, 0, NULL, 1, 1)",
		"clean_logs_v1(false, 0, NULL, 1, 1)", "clean_slots_v1(0, NULL, 1, 1)", "clean_operations_v1(0, 1, 1)",
	} {
		refused(b, conn, "RN003", "a clock of the caller's", "SELECT ration."+call)
	}
}

func TestRolesOfTheGeneralPath(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	views := []string{"SELECT * FROM ration.window_now", "SELECT * FROM ration.log_now", "SELECT * FROM ration.slot_now"}
	outcomes := []string{"SELECT FROM ration.operation", "SELECT FROM ration.slot", "SELECT FROM ration.slot_parent"}
	cleaning := []string{
		"SELECT ration.clean_windows_v1(false, 0, NULL, 1)", "SELECT ration.clean_logs_v1(false, 0, NULL, 1)",
		"SELECT ration.clean_slots_v1(0, NULL, 1)", "SELECT ration.clean_slot_parents_v1(0, NULL, 1)", "SELECT ration.clean_operations_v1(0, 1)",
	}
	decisions := []string{
		"SELECT ration.decide_v1(0, 0, ARRAY['" + key + "'::uuid], ARRAY['" + key + "'::uuid], '{0}', '{f}', '{}', '{}', '{}', '{}', '{}', '{}', 0)",
		"SELECT ration.settle_v1(0, '" + key + "', 1)", "SELECT ration.release_slot_v1(0, '" + key + "')", "SELECT ration.renew_slot_v1(0, '" + key + "')",
	}
	var hidden []string
	for _, table := range []string{"window_fast", "window_durable", "log_fast", "log_durable"} {
		hidden = append(hidden, "SELECT FROM ration."+table, "DELETE FROM ration."+table)
	}
	for _, table := range []string{"operation", "slot", "slot_parent"} {
		hidden = append(hidden, "DELETE FROM ration."+table, "TRUNCATE ration."+table)
	}
	// The row behind each view is computed with the rights of whoever looks.
	may(b, b.service(), "ration_service",
		putLimitSQL("window", 0, `{"algorithm": "sliding_window_counter", "limit": 10, "windowSeconds": 60}`, 10),
		putLimitSQL("log", 0, `{"algorithm": "sliding_window_log", "limit": 10, "windowSeconds": 60}`, 10))
	b.exec("INSERT INTO ration.window_durable VALUES (0, 1, 1, gen_random_uuid(), 0, 1, 1)")
	b.exec("INSERT INTO ration.log_durable VALUES (gen_random_uuid(), 0, 2, 1, '{1,1}')")
	b.exec("INSERT INTO ration.slot (id, key, shard, policy, cost, ttl, expires_at) VALUES ('" + key + "', gen_random_uuid(), 0, 1, 1, 1, 9223372036854775807)")

	service, operator, reader := b.service(), b.as("ration_operator"), b.as("ration_reader")
	for _, statements := range [][]string{views, outcomes, cleaning, decisions} {
		may(b, service, "ration_service", statements...)
	}
	mayNot(b, service, "ration_service", hidden...)
	may(b, operator, "ration_operator", views...)
	may(b, operator, "ration_operator", cleaning...)
	for _, statements := range [][]string{outcomes, decisions, hidden} {
		mayNot(b, operator, "ration_operator", statements...)
	}
	may(b, reader, "ration_reader", views...)
	for _, statements := range [][]string{outcomes, cleaning, decisions, hidden} {
		mayNot(b, reader, "ration_reader", statements...)
	}
}
