package pgstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rationhq/ration/policy"
)

// A settlement finds each row by its key, whatever the planner knows or
// believes of the tables.
func TestPlansOfSettlements(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.explain() // skips before there is much to do
	var of []*policy.Installed
	for name, s := range algorithms(1_000) {
		for _, s.durability = range []policy.Durability{policy.Fast, policy.Durable} {
			of = append(of, b.install(name+"-"+s.durability.String(), 0, s, 0))
		}
	}
	session := b.session()
	for _, rows := range []uint64{1, 60} {
		for _, analysed := range []bool{false, true} {
			b.unanalyse()
			operation := fmt.Sprintf("%d-%t", rows, analysed)
			for key := range rows {
				asked := everyKey(of, key)
				b.claim(session, second, operating(fmt.Sprint(operation, key), asked.Checks...))
			}
			if analysed {
				b.exec("ANALYZE")
			}
			e := b.explain()
			var status, parts, applied int
			err := e.QueryRow(t.Context(), `SELECT o_status, cardinality(o_policy), cardinality(array_positions(o_applied, true))
				FROM ration.settle_v1(0, $1::text::uuid, 0, $2)`, fmt.Sprintf("%x", operationKey(operation+"0")), epochMicros+second).Scan(&status, &parts, &applied)
			if err != nil || policy.SettleStatus(status) != policy.SettleDone || parts != len(of) || applied != len(of)-2 {
				t.Errorf("%s: status %d, %d of %d parts applied, %v", operation, status, applied, parts, err)
			}
			for _, notice := range e.notices {
				if fault := b.readPlan(notice).fault(); fault != "" {
					t.Errorf("%s: %s\n%s", operation, fault, notice)
				}
			}
			_ = e.Close(context.Background()) // it has shown what it was for
		}
	}
}
