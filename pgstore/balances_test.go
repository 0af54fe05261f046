package pgstore_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// admits says of keys 0 to keys-1 which of them a call of the default cost is
// allowed for.
func (b *bench) admits(session *pgstore.Session, of *policy.Installed, keys uint64, atMicros int64) []bool {
	b.Helper()
	claims := b.claims(atMicros)
	for key := range keys {
		claims.Claims = append(claims.Claims, policy.Claim{Peek: true, Checks: []policy.Check{check(of, key, of.Spec.Costs.Default)}})
	}
	verdicts, err := decideClaims(session, claims)
	if err != nil {
		b.Fatal(err)
	}
	admitted := make([]bool, keys)
	for i := range verdicts {
		admitted[i] = verdicts[i].Allowed
	}
	return admitted
}

// What is counted before a change is what becomes of keys by it: of every
// algorithm, by every rule, and of rows that stem from changes before.
func TestADryRunCountsWhatTheChangeDoes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	random := newRandom(t)
	session := b.session()
	for name, s := range algorithms(20) {
		for _, s.durability = range []policy.Durability{policy.Fast, policy.Durable} {
			of := b.install(name+"-"+s.durability.String(), 0, s, second)
			for round := range int64(6) {
				of = b.changeAsCounted(session, of, s, random, (round+2)*second)
			}
		}
	}
}

// changeAsCounted charges some keys of a policy, counts what a random change
// would do, makes it and compares.
func (b *bench) changeAsCounted(session *pgstore.Session, of *policy.Installed, s shape, random *rand.Rand, atMicros int64) *policy.Installed {
	b.Helper()
	const keys = 30
	for key := range uint64(keys) {
		if random.IntN(2) == 0 {
			b.claim(session, atMicros, claim(check(of, key, 1+random.Int64N(of.Spec.Limit.Capacity))))
		}
	}
	s.capacity = 1 + random.Int64N(40)
	change := s.change(b)
	change.Spec.Costs.Default = 1 + random.Int64N(4)
	rules := []struct {
		balances policy.Balances
		start    policy.Start
	}{{policy.Keep, policy.StartNone}, {policy.Restart, policy.StartFull}}
	if s.algorithm != policy.Concurrency {
		rules = append(rules, rules[0], rules[0], rules[1])
		rules[2].balances = policy.Reset
		rules[3].balances = policy.Keep
		rules[4].start = policy.StartEmpty
	}
	if s.algorithm == policy.TokenBucket {
		rules[3].balances = policy.Scale
	}
	rule := rules[random.IntN(len(rules))]
	change.Balances, change.Start = rule.balances, rule.start

	got, err := b.store.CountBalances(b.Context(), of.ID, change, time.Hour, epochMicros+atMicros)
	if err != nil {
		b.Fatalf("%s, %+v: %v", of.ID, rule, err)
	}
	var want policy.DryBalances
	live := b.live(of)
	want.Live = int64(len(live))
	before := b.admits(session, of, keys, atMicros)
	put := policy.Put{ID: of.ID, Expected: of.Version, Change: change, Author: policy.Author{Actor: "test"}}
	after, _, err := b.store.PutAt(b.Context(), put, epochMicros+atMicros)
	if err != nil {
		b.Fatalf("%s, %+v: %v", of.ID, rule, err)
	}
	for key, admitted := range b.admits(session, after, keys, atMicros) {
		// An idle key without a row has no balance to count.
		if before[key] && !admitted && live[check(of, uint64(key), 1).Key] {
			want.Denied++
		}
	}
	if s.algorithm == policy.TokenBucket && rule.balances <= policy.Scale && after.Version > of.Version { // the same content is no change
		want.Clamped = scalar[int64](b, `SELECT count(*) FROM ration.policy AS p, ration.bucket_`+s.durability.String()+` AS t,
			ration.carry_v1(t.policy, t.version, $2 - 1, t.balance, t.at) AS c, ration.carry_v1(t.policy, $2 - 1, $2, c.o_balance, c.o_at) AS n
			WHERE p.number = $1 AND t.policy = $1 AND t.version >= p.since AND n.o_clamped`, of.Number, after.Version)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("%s, from version %d, %d of capacity to %d, cost %d to %d, %+v: the change did (-), was counted (+)\n%s", of.ID, of.Version,
			of.Spec.Limit.Capacity, s.capacity, of.Spec.Costs.Default, change.Spec.Costs.Default, rule, diff)
	}
	return after
}

// live gives the keys of a policy that have a row which counts.
func (b *bench) live(of *policy.Installed) map[policy.Key]bool {
	b.Helper()
	place := scalar[int](b, "SELECT ration.state_place_v1(p.algorithm, p.strict, p.durability) FROM ration.policy AS p WHERE p.number = $1", of.Number)
	counts := " AND t.version >= p.since"
	if place == 7 { // slots have no version
		counts = ""
	}
	keys := scalar[[][16]byte](b, "SELECT coalesce(array_agg(t.key), '{}') FROM ration.policy AS p JOIN ration."+stateTables[place-1]+
		" AS t ON t.policy = p.number WHERE p.number = $1"+counts, of.Number)
	live := make(map[policy.Key]bool)
	for _, key := range keys {
		live[key] = true
	}
	return live
}

// Counting ends when its time is over, and says so; it reads nothing of a
// state that was lost, and knows of no policy that is not there.
func TestCountingBalancesIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	of := b.install("p", 0, shape{capacity: 10}, 0)
	count := func(id string, longest time.Duration) policy.DryBalances {
		t.Helper()
		counted, err := b.store.CountBalances(t.Context(), id, shape{capacity: 5}.change(t), longest, epochMicros+second)
		if err != nil {
			t.Fatal(err)
		}
		return counted
	}
	b.exec(`INSERT INTO ration.bucket_fast (balance, at, key, shard, policy, version, took)
		SELECT p.capacity_units, p.idle_at, md5(i::text)::uuid, 0, p.number, 1, 0
		FROM ration.policy AS p, generate_series(1, 10001) AS i WHERE p.number = $1`, of.Number)
	if got, want := count("p", 0), (policy.DryBalances{Live: 10_000, Clamped: 10_000, AtLeast: true}); got != want {
		t.Errorf("in no time: %+v, want one piece, %+v", got, want)
	}
	if got, want := count("p", time.Hour), (policy.DryBalances{Live: 10_001, Clamped: 10_001}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := count("q", time.Hour); got != (policy.DryBalances{}) {
		t.Errorf("of no policy: %+v", got)
	}
	b.lose()
	_, err := b.store.CountBalances(t.Context(), "p", shape{capacity: 5}.change(t), time.Hour, epochMicros+second)
	if err == nil {
		t.Error("a state that was lost is counted")
	}
}
