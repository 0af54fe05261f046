package pgstore_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rationhq/ration/policy"
)

// decide calls decide_v1 with its cells in random order.
func (e *explainer) decide(b *bench, hold policy.Hold, claims *policy.Claims, random *rand.Rand) (statuses []int32) {
	b.Helper()
	type cell struct {
		key    policy.Key
		policy int32
	}
	var cells []cell
	var of, places []int32
	var costs []int64
	for i, claim := range claims.Claims {
		for _, check := range claim.Checks {
			if c := (cell{check.Key, check.Policy.Number}); !slices.Contains(cells, c) {
				cells = append(cells, c)
			}
			of, costs = append(of, int32(i+1)), append(costs, check.Cost)
		}
	}
	random.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
	for _, claim := range claims.Claims {
		for _, check := range claim.Checks {
			places = append(places, int32(slices.Index(cells, cell{check.Key, check.Policy.Number})+1))
		}
	}
	policies, keys := make([]int32, len(cells)), make([]pgtype.UUID, len(cells))
	for i, c := range cells {
		policies[i], keys[i] = c.policy, pgtype.UUID{Bytes: c.key, Valid: true}
	}
	n := len(claims.Claims)
	e.notices = nil
	err := e.QueryRow(b.Context(), `SELECT o_status FROM ration.decide_v1(0, $1, array_fill(NULL::uuid, ARRAY[$2::int]),
		array_fill(NULL::uuid, ARRAY[$2::int]), array_fill(0::bigint, ARRAY[$2::int]), array_fill(false, ARRAY[$2::int]), $3, $4, $5, $6, $7,
		array_fill(false, ARRAY[cardinality($5::int[])]), 0, $8, $9)`,
		claims.Generation, n, policies, keys, of, places, costs, hold.String(), claims.NowMicros).Scan(&statuses)
	if err != nil {
		b.Fatal(err)
	}
	return statuses
}

// claimPlanRows is how many keys of each policy have a row beforehand.
const claimPlanRows = uint64(60)

// Rows are inserted and locked in the order of their keys, and each is found
// by its key, whatever the planner knows or believes of the tables.
func TestPlansOfClaimsAreDrivenBySortedKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.explain() // skips before there is much to do
	random := newRandom(t)
	kinds := algorithms(1_000)
	names := slices.Sorted(maps.Keys(kinds))
	var of []*policy.Installed // one of each algorithm and durability
	policies := 0
	for _, want := range []int{1, 2, 200} {
		for ; policies < want; policies++ {
			s := kinds[names[policies%len(names)]]
			s.durability = policy.Durability(policies / len(names) % 2)
			installed := b.install(fmt.Sprint(policies), 0, s, 0)
			if policies < 2*len(names) {
				of = append(of, installed)
			}
		}
		for _, analysed := range []bool{false, true} {
			b.unanalyse()
			session := b.session()
			for key := range claimPlanRows {
				b.claim(session, second, everyKey(of, key))
			}
			session.Close()
			if analysed {
				b.exec("ANALYZE")
			}
			b.checkClaimPlans(fmt.Sprintf("%d policies, analysed %t", want, analysed), of, random)
		}
	}
}

// everyKey asks the key of one number of every policy.
func everyKey(of []*policy.Installed, number uint64) policy.Claim {
	var c policy.Claim
	for _, installed := range of {
		c.Checks = append(c.Checks, check(installed, number, 1))
	}
	return c
}

// checkClaimPlans decides on new keys and on old ones in a new session and
// checks how it was done.
func (b *bench) checkClaimPlans(name string, of []*policy.Installed, random *rand.Rand) {
	b.Helper()
	e := b.explain()
	defer func() { _ = e.Close(context.Background()) }() // there are many
	claims := b.claims(second)
	for number := range uint64(12) {
		claims.Claims = append(claims.Claims, everyKey(of, claimPlanRows-6+number)) // half of them new
	}
	inserts, locks := 0, 0
	for _, hold := range []policy.Hold{policy.HoldWait, policy.HoldSkip} {
		if statuses := e.decide(b, hold, claims, random); slices.ContainsFunc(statuses, func(s int32) bool { return s != int32(policy.ClaimDecided) }) {
			b.Errorf("%s: statuses %v", name, statuses)
		}
		for _, notice := range e.notices {
			plan := b.readPlan(notice)
			if fault := plan.fault(); fault != "" {
				b.Errorf("%s: %s\n%s", name, fault, notice)
			}
			switch {
			case plan.Operation == "Insert" && isState(plan.Relation):
				inserts++
				if !plan.sortsByKey() {
					b.Errorf("%s: nothing sorts the keys before rows are inserted\n%s", name, notice)
				}
			case plan.locks() && hold == policy.HoldWait && plan.Operation == "": // updated are rows that are locked
				locks++
				if !plan.sortsByKey() {
					b.Errorf("%s: nothing sorts the keys before rows are locked\n%s", name, notice)
				}
			}
		}
	}
	if inserts == 0 || locks == 0 {
		b.Errorf("%s: %d statements insert rows and %d lock them", name, inserts, locks)
	}
}

// Claims are not planned anew for each call either.
func TestPlansOfClaimsAreGeneric(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.explain()
	random := newRandom(t)
	var of []*policy.Installed
	for name, s := range algorithms(1000) {
		of = append(of, b.install(name, 0, s, 0))
	}
	claims := b.claims(second, everyKey(of, 0xabcdef))
	for range 20 {
		e.decide(b, policy.HoldWait, claims, random)
	}
	plans := strings.Join(e.notices, "\n")
	key := claims.Claims[0].Checks[0].Key
	if constant := hex.EncodeToString(key[4:8]); strings.Contains(strings.ReplaceAll(plans, "-", ""), constant) {
		t.Errorf("the key %x stands in a plan\n%s", key, plans)
	}
	if !strings.Contains(plans, "($6)[") {
		t.Errorf("the keys are no parameters\n%s", plans)
	}
}
