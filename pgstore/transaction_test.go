package pgstore_test

import (
	"context"
	"testing"
)

// TestCallsOfOneTransaction: the functions are an interface of their own, so
// several calls may share a transaction or stand in a savepoint. Each decides
// by what the ones before it left.
func TestCallsOfOneTransaction(t *testing.T) {
	t.Parallel()
	for name, statements := range map[string]string{
		"plain":                "",
		"in a savepoint":       "SAVEPOINT s",
		"after another insert": "CREATE TEMP TABLE other ON COMMIT DROP AS SELECT 1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.install("p", 0, shape{capacity: 2}, 0)
			ctx := context.Background()
			tx, err := b.owner.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(ctx) }()
			if _, err := tx.Exec(ctx, statements); err != nil {
				t.Fatal(err)
			}
			var admitted []int
			for _, function := range []string{"take_v1", "take_new_v1", "take_new_v1", "take_new_v1", "take_v1"} {
				var n *int
				err := tx.QueryRow(ctx, `SELECT f.o_admitted[1] FROM ration.policy_set AS s, ration.policy AS p,
					ration.`+function+`(0, s.generation, ARRAY[p.number], ARRAY[uuid '00000000-0000-0000-0000-000000000001'], '{1}', '{1}') AS f`).Scan(&n)
				if err != nil {
					t.Fatal(err)
				}
				if n == nil { // undecided by the fast path: the row is not there yet
					admitted = append(admitted, -1)
				} else {
					admitted = append(admitted, *n)
				}
			}
			want := []int{-1, 1, 1, 0, 0}
			for i := range want {
				if admitted[i] != want[i] {
					t.Fatalf("five calls on a capacity of 2 admitted %v, want %v", admitted, want)
				}
			}
		})
	}
}
