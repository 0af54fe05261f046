package pgstore_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rationhq/ration/internal/skip"
	"github.com/rationhq/ration/policy"
)

// planNode is a node of a plan as EXPLAIN's JSON has it.
type planNode struct {
	Type      string     `json:"Node Type"`
	Operation string     `json:"Operation"`
	Relation  string     `json:"Relation Name"`
	CTE       string     `json:"CTE Name"`
	Cond      string     `json:"Index Cond"`
	SortKey   []string   `json:"Sort Key"`
	Plans     []planNode `json:"Plans"`
}

// explainer is the owner's session that sees the plan of every statement
// inside the functions that it calls.
type explainer struct {
	*pgx.Conn

	notices []string
}

// explain opens a session that gathers plans, or skips the test where the
// server cannot show them.
func (b *bench) explain() *explainer {
	b.Helper()
	config, err := pgx.ParseConfig(b.db.OwnerURL())
	if err != nil {
		b.Fatal(err)
	}
	e := new(explainer)
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		if _, plan, found := strings.Cut(notice.Message, "plan:\n"); found {
			e.notices = append(e.notices, plan)
		}
	}
	if e.Conn, err = pgx.ConnectConfig(b.Context(), config); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close(context.Background()) }) // it has shown what it was for
	if _, err := e.Exec(b.Context(), "LOAD 'auto_explain'"); err != nil {
		skip.Because(b, "needs the auto_explain module: "+err.Error())
	}
	if _, err := e.Exec(b.Context(), `SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
		SET auto_explain.log_level = notice; SET auto_explain.log_format = json; SET auto_explain.log_verbose = on`); err != nil {
		b.Fatal(err)
	}
	return e
}

// call calls a decision function with arrays as the caller orders them and
// gives the elements in the order in which they were decided.
func (e *explainer) call(b *bench, function string, batch *policy.Batch) (elements []int32) {
	b.Helper()
	n := len(batch.Asks)
	policies, keys, costs, counts := make([]int32, n), make([]string, n), make([]int64, n), make([]int32, n)
	for i, ask := range batch.Asks {
		policies[i], keys[i], costs[i], counts[i] = ask.Policy, fmt.Sprintf("%x", ask.Key), ask.Cost, ask.Count
	}
	e.notices = nil
	err := e.QueryRow(b.Context(), "SELECT o_element FROM ration."+function+"(0, $1, $2, $3::text[]::uuid[], $4, $5, p_now => $6)",
		batch.Generation, policies, keys, costs, counts, batch.NowMicros).Scan(&elements)
	if err != nil {
		b.Fatalf("%s: %v", function, err)
	}
	return elements
}

// unanalyse empties the tables that decisions write and takes away what
// ANALYZE has found out.
func (b *bench) unanalyse() {
	b.Helper()
	tables := "ration." + strings.Join(stateTables[:], ", ration.")
	b.exec("TRUNCATE " + tables)
	b.exec("DELETE FROM pg_statistic WHERE starelid = ANY ($1::text[]::regclass[])", append(strings.Split(tables, ", "), "ration.policy"))
}

// Rows are locked in the order of the keys, and each is found by its key,
// whatever the planner knows or believes of the tables.
func TestPlansAreDrivenBySortedElements(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.explain() // skips before there is much to do
	random := newRandom(t)
	installed := map[policy.Durability]*policy.Installed{}
	policies := 0
	for _, want := range []int{1, 2, 200} {
		for ; policies < want; policies++ {
			durability := policy.Durability(policies % 2)
			of := b.install(fmt.Sprintf("p%d", policies), 0, shape{capacity: 1000, durability: durability}, 0)
			if installed[durability] == nil {
				installed[durability] = of
			}
		}
		for _, rows := range []int{0, 1, 1000} {
			b.unanalyse()
			for durability, of := range installed {
				b.exec(fmt.Sprintf(`INSERT INTO ration.bucket_%s (balance, at, key, shard, policy, version, took)
					SELECT p.capacity_units, $1, (lpad(to_hex(i), 16, '0') || lpad(to_hex(p.number), 16, '0'))::uuid, 0, p.number, 1, 0
					FROM ration.policy AS p, generate_series(0, $2::int - 1) AS i WHERE p.number = $3`, durability),
					epochMicros, rows, of.Number)
			}
			for _, analysed := range []bool{false, true} {
				if rows == 0 {
					b.exec("DELETE FROM ration.bucket_fast; DELETE FROM ration.bucket_durable") // what the last look left
				}
				if analysed {
					b.exec("ANALYZE ration.policy, ration.bucket_fast, ration.bucket_durable")
				}
				for durability, of := range installed {
					name := fmt.Sprintf("%d policies, %d rows, analysed %t, %s", want, rows, analysed, durability)
					b.checkPlans(name, of, rows, random)
				}
			}
		}
	}
}

// checkPlans decides a batch in random order down both paths in a new session
// and checks how it was done.
func (b *bench) checkPlans(name string, of *policy.Installed, rows int, random *rand.Rand) {
	b.Helper()
	suffix := map[policy.Durability]string{policy.Fast: "_v1", policy.Durable: "_durable_v1"}[of.Spec.Durability]
	numbers := make([]uint64, max(1, min(rows, 128)))
	for i, number := range random.Perm(max(1, rows))[:len(numbers)] {
		numbers[i] = uint64(number)
	}
	batch := b.batch(of, numbers...)
	e := b.explain()
	defer func() { _ = e.Close(context.Background()) }() // there are many
	elements := e.call(b, "take"+suffix, batch)
	if len(elements) != rows && len(elements) != 128 {
		b.Errorf("%s: %d of %d elements were decided", name, len(elements), len(numbers))
	}
	if !slices.IsSortedFunc(elements, func(x, y int32) int { return slices.Compare(batch.Asks[x-1].Key[:], batch.Asks[y-1].Key[:]) }) {
		b.Errorf("%s: rows were written in another order than that of their keys", name)
	}
	b.checkNotices(name+", take", e.notices)
	e.call(b, "take_new"+suffix, batch)
	b.checkNotices(name+", take_new", e.notices)
}

// checkNotices checks the plans of one call.
func (b *bench) checkNotices(name string, notices []string) {
	b.Helper()
	driven := 0
	for _, notice := range notices {
		plan := b.readPlan(notice)
		if fault := plan.fault(); fault != "" {
			b.Errorf("%s: %s\n%s", name, fault, notice)
		}
		if plan.locks() {
			driven++
			if !plan.sortsByKey() {
				b.Errorf("%s: nothing sorts the elements before rows are locked\n%s", name, notice)
			}
		}
	}
	if driven != 1 {
		b.Errorf("%s: %d statements lock rows in their order, want one", name, driven)
	}
}

// readPlan reads a plan that the server has shown.
func (b *bench) readPlan(notice string) *planNode {
	b.Helper()
	var explained struct{ Plan planNode }
	if err := json.Unmarshal([]byte(notice), &explained); err != nil {
		b.Fatalf("%v\n%s", err, notice)
	}
	return &explained.Plan
}

// isState says whether a table has one row for each key that was charged.
func isState(relation string) bool { return slices.Contains(stateTables[:7], relation) }

// reaches says whether such a table is read below a node.
func (p *planNode) reaches() bool {
	return isState(p.Relation) && p.Type != "ModifyTable" || slices.ContainsFunc(p.Plans, func(q planNode) bool { return q.reaches() })
}

// fault tells of a row of such a table that is not found by its key, or is
// joined in another way than by a nested loop.
func (p *planNode) fault() string {
	if isState(p.Relation) && p.Type != "ModifyTable" && p.Type != "Tid Scan" {
		if !strings.HasPrefix(p.Type, "Index") || !strings.Contains(p.Cond, "key = ") || !strings.Contains(p.Cond, "shard = ") {
			return fmt.Sprintf("%s on %s by %q", p.Type, p.Relation, p.Cond)
		}
	}
	if (p.Type == "Hash Join" || p.Type == "Merge Join") && p.reaches() {
		return p.Type + " on a table of keys"
	}
	if p.Type == "Nested Loop" && p.Plans[0].reaches() && !strings.Contains(p.Plans[0].Type, "Nested Loop") {
		return "a table of keys drives a nested loop"
	}
	for i := range p.Plans {
		if fault := p.Plans[i].fault(); fault != "" {
			return fault
		}
	}
	return ""
}

// locks says whether a plan locks rows that nobody has locked before it: the
// UPDATE of the fast path, or the settling path's own locks.
func (p *planNode) locks() bool {
	return p.Type == "LockRows" || p.Operation == "Update" && !p.readsDecided() ||
		slices.ContainsFunc(p.Plans, func(q planNode) bool { return q.locks() })
}

// readsDecided says whether a plan reads what the settling path has decided
// under its locks, or finds rows by the places at which decide_lock_v1 has
// locked them.
func (p *planNode) readsDecided() bool {
	return p.Type == "CTE Scan" && p.CTE == "outcome" || p.Type == "Tid Scan" || slices.ContainsFunc(p.Plans, func(q planNode) bool { return q.readsDecided() })
}

// sortsByKey says whether a plan sorts elements by their keys, which are the
// fourth parameter of the functions of one policy, and the sixth of
// decide_lock_v1.
func (p *planNode) sortsByKey() bool {
	return p.Type == "Sort" && (strings.HasSuffix(p.SortKey[0], "key") || strings.Contains(p.SortKey[0], "$4") || strings.Contains(p.SortKey[0], "($6)[")) ||
		slices.ContainsFunc(p.Plans, func(q planNode) bool { return q.sortsByKey() })
}

// A small batch is not planned anew for each call: what is in the plan stands
// for any batch.
func TestPlansAreGeneric(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.explain()
	of := b.install("p", 0, shape{capacity: 1000}, 0)
	batch := b.batch(of, 7)
	b.decide(b.session(), batch)
	for _, function := range []string{"take_v1", "take_new_v1"} {
		for range 50 {
			e.call(b, function, batch)
		}
		plans := strings.Join(e.notices, "\n")
		if !strings.Contains(plans, "$4") { // the keys
			t.Errorf("%s: the elements are no parameters\n%s", function, plans)
		}
		if constant := hex.EncodeToString(batch.Asks[0].Key[8:]); strings.Contains(strings.ReplaceAll(plans, "-", ""), constant) {
			t.Errorf("%s: the key %s stands in the plan\n%s", function, constant, plans)
		}
	}
}
