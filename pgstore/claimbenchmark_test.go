package pgstore_test

import (
	"context"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// claimKeysShare is how many policies share the benchmarks' keys where there
// are several: each gets so much less.
const claimKeysShare = 10

// plenty is a capacity that no key uses up within a benchmark.
const plenty = 100_000

// claimLoad is a database with policies whose keys have rows.
type claimLoad struct {
	testing.TB

	store      *pgstore.Store
	db         *dbtest.DB
	generation int64
	keys       map[int32][]policy.Key // by policy
	lanes      uint64                 // so far
}

func newClaimLoad(b *testing.B) *claimLoad {
	b.Helper()
	db := dbtest.New(b)
	l := &claimLoad{TB: b, db: db, keys: make(map[int32][]policy.Key)}
	l.exec("ALTER ROLE ration_service IN DATABASE " + pgx.Identifier{db.Name}.Sanitize() + " SET statement_timeout = '10s'")
	l.store = open(b, db)
	return l
}

func (l *claimLoad) exec(sql string, arguments ...any) {
	l.Helper()
	if _, err := l.db.Owner().Exec(context.Background(), sql, arguments...); err != nil {
		l.Fatalf("%s: %v", sql, err)
	}
}

// install puts a policy in force and gives it a row for each of its keys, by
// what is left of each: all of it, or nothing.
func (l *claimLoad) install(id string, s shape, keys int, empty bool) *policy.Installed {
	l.Helper()
	of, _, err := l.store.Put(context.Background(), policy.Put{ID: id, Change: s.change(l), Author: policy.Author{Actor: "benchmark"}})
	if err != nil {
		l.Fatal(err)
	}
	if l.generation, _, err = l.store.Load(context.Background(), 0); err != nil {
		l.Fatal(err)
	}
	made := make([]policy.Key, keys)
	for i := range made {
		made[i] = md5.Sum(binary.BigEndian.AppendUint64(nil, uint64(of.Number)<<32|uint64(i)))
	}
	l.keys[of.Number] = made
	used := int64(0)
	if empty {
		used = s.capacity
	}
	l.fill(of, used)
	return of
}

// fill inserts rows of keys that have used some tokens.
func (l *claimLoad) fill(of *policy.Installed, used int64) {
	l.Helper()
	table, columns, values := "bucket", "balance, at, took", "p.capacity_units - $3::bigint * p.d, p.idle_at, 0"
	switch limit := of.Spec.Limit; {
	case limit.Algorithm == policy.Concurrency:
		l.exec("INSERT INTO ration.slot_parent (key, shard, policy) SELECT k.key, 0, $2 FROM unnest($1::uuid[]) AS k (key)", l.keys[of.Number], of.Number)
		l.exec("VACUUM ANALYZE ration.slot_parent")
		return
	case limit.Algorithm == policy.SlidingWindowLog, limit.Strict:
		table, columns, values = "log", "entries", "CASE WHEN $3::bigint > 0 THEN ARRAY[p.idle_at, $3::bigint] ELSE '{}' END"
	case limit.Algorithm != policy.TokenBucket:
		table, columns, values = "window", "start, current, previous", "p.idle_at - p.idle_at % p.span, $3::bigint, 0"
	}
	table = fmt.Sprintf("ration.%s_%s", table, of.Spec.Durability)
	l.exec(fmt.Sprintf(`INSERT INTO %s (%s, key, shard, policy, version) SELECT %s, k.key, 0, p.number, p.version
		FROM ration.policy AS p, unnest($1::uuid[]) AS k (key) WHERE p.number = $2`, table, columns, values), l.keys[of.Number], of.Number, used)
	l.exec("VACUUM ANALYZE " + table)
}

// claimLane is one connection's work: calls of claims on random keys, each on
// one key of every policy.
type claimLane struct {
	*claimLoad

	policies []*policy.Installed
	random   *rand.Rand
	session  *pgstore.Session
	claims   policy.Claims
	verdicts policy.Verdicts
	denied   bool // what every claim is to come to
}

// lane makes a lane whose calls have size claims.
func (l *claimLoad) lane(size int, policies ...*policy.Installed) *claimLane {
	l.Helper()
	l.lanes++
	lane := &claimLane{claimLoad: l, policies: policies, random: rand.New(rand.NewPCG(l.lanes, uint64(size))), session: l.store.NewSession()}
	l.Cleanup(lane.session.Close)
	lane.claims = policy.Claims{Generation: l.generation, RetentionMicros: retention, Claims: make([]policy.Claim, size)}
	for i := range lane.claims.Claims {
		lane.claims.Claims[i].Checks = make([]policy.Check, len(policies))
	}
	if err := lane.session.Connect(context.Background()); err != nil {
		l.Fatal(err)
	}
	return lane
}

// call decides one call of random claims, under operation ids or not.
func (l *claimLane) call(operating bool) error {
	for i := range l.claims.Claims {
		claim := &l.claims.Claims[i]
		if operating {
			binary.BigEndian.PutUint64(claim.Operation[:], rand.Uint64()) // of nobody else, in whatever run
			binary.BigEndian.PutUint64(claim.Operation[8:], rand.Uint64())
		}
		for j, of := range l.policies {
			keys := l.keys[of.Number]
			claim.Checks[j] = policy.Check{Policy: of, Key: keys[l.random.IntN(len(keys))], Cost: 1, Priced: true}
		}
	}
	if err := l.session.Decide(context.Background(), policy.HoldWait, &l.claims, &l.verdicts); err != nil {
		return err
	}
	for i := range l.verdicts.Verdicts {
		if v := &l.verdicts.Verdicts[i]; v.Status != policy.ClaimDecided || v.Allowed == l.denied {
			return fmt.Errorf("claim %d: %+v", i, v)
		}
	}
	return nil
}

// run makes calls for as long as the benchmark lasts and reports claims a
// second.
func (l *claimLane) run(b *testing.B, operating bool) {
	b.Helper()
	for b.Loop() {
		if err := l.call(operating); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(l.claims.Claims))/b.Elapsed().Seconds(), "claims/s")
}

// BenchmarkOneBucketByBothPaths compares, in turns of one run, take_v1 with
// decide_v1 on single token buckets.
func BenchmarkOneBucketByBothPaths(b *testing.B) {
	const batch, turn = 64, 50
	l := newClaimLoad(b)
	of := l.install("bench", shape{capacity: plenty}, benchKeys(b), false)
	claiming := l.lane(batch, of)
	all := &loaded{store: l.store, db: l.db, keys: l.keys[of.Number], generation: l.generation, number: of.Number}
	taking := []*benchLane{all.lane(b, 0, 1, batch)}
	var take, decide, rounds float64
	for b.Loop() {
		take += rate(b, taking, turn, (*benchLane).take)
		begun := time.Now()
		for range turn {
			if err := claiming.call(false); err != nil {
				b.Fatal(err)
			}
		}
		decide += float64(turn*batch) / time.Since(begun).Seconds()
		rounds++
	}
	b.ReportMetric(take/rounds, "take/s")
	b.ReportMetric(decide/rounds, "decide/s")
	b.ReportMetric(decide/take, "decide/take")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkThreePolicies decides claims on an address, an API key and an
// account, with and without operation ids, by one lane and by two.
func BenchmarkThreePolicies(b *testing.B) {
	const batch = 64
	l := newClaimLoad(b)
	var policies []*policy.Installed
	for _, id := range []string{"ip", "key", "account"} {
		policies = append(policies, l.install(id, shape{capacity: plenty}, benchKeys(b)/claimKeysShare, false))
	}
	for _, operating := range []bool{false, true} {
		for _, lanes := range []int{1, 2} {
			b.Run(fmt.Sprintf("operations=%t/lanes=%d", operating, lanes), func(b *testing.B) {
				working := make([]*claimLane, lanes)
				for i := range working {
					working[i] = l.lane(batch, policies...)
				}
				for b.Loop() {
					var wait sync.WaitGroup
					for _, lane := range working {
						wait.Go(func() {
							if err := lane.call(operating); err != nil {
								b.Error(err)
							}
						})
					}
					wait.Wait()
				}
				b.ReportMetric(float64(b.N*batch*lanes)/b.Elapsed().Seconds(), "claims/s")
			})
		}
	}
}

// BenchmarkPoliciesPerClaim shows that a claim's cost grows with its policies,
// and no faster.
func BenchmarkPoliciesPerClaim(b *testing.B) {
	const policiesMax, batch = 32, 32
	l := newClaimLoad(b)
	var policies []*policy.Installed
	for i := range policiesMax {
		policies = append(policies, l.install(fmt.Sprint(i), shape{capacity: plenty}, benchKeys(b)/claimKeysShare/policiesMax+1, false))
	}
	for n := 1; n <= policiesMax; n *= 2 {
		b.Run(fmt.Sprintf("policies=%d", n), func(b *testing.B) { l.lane(batch, policies[:n]...).run(b, false) })
	}
}

// BenchmarkClaimsDenied compares claims that are all admitted with claims that
// the second of two policies denies.
func BenchmarkClaimsDenied(b *testing.B) {
	l := newClaimLoad(b)
	keys := benchKeys(b) / claimKeysShare
	open, full := l.install("open", shape{capacity: plenty}, keys, false), l.install("full", shape{capacity: plenty}, keys, false)
	empty := l.install("empty", shape{capacity: plenty}, keys, true)
	for name, second := range map[string]*policy.Installed{"admitted": full, "denied": empty} {
		b.Run(name, func(b *testing.B) {
			lane := l.lane(64, open, second)
			lane.denied = second == empty
			lane.run(b, false)
		})
	}
}

// BenchmarkAlgorithms decides claims on one policy of each algorithm.
func BenchmarkAlgorithms(b *testing.B) {
	l := newClaimLoad(b)
	for name, s := range algorithms(1_000) {
		s.seconds = "60"
		of := l.install(name, s, benchKeys(b)/claimKeysShare, false)
		b.Run(name, func(b *testing.B) { l.lane(64, of).run(b, false) })
	}
}
