package pgstore_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// benchKeys is how many buckets the benchmarks decide on; RATION_BENCH_KEYS
// makes it smaller where only their running matters.
func benchKeys(b *testing.B) int {
	b.Helper()
	keys := 1_000_000
	if text := os.Getenv("RATION_BENCH_KEYS"); text != "" {
		var err error
		if keys, err = strconv.Atoi(text); err != nil || keys < 1024 {
			b.Fatalf("RATION_BENCH_KEYS is %q, not a number from 1024", text)
		}
	}
	return keys
}

// loaded is a database with buckets: a policy whose buckets never run dry, and one
// row for each key.
type loaded struct {
	store      *pgstore.Store
	db         *dbtest.DB
	keys       []policy.Key
	generation int64
	number     int32
}

func newLoaded(b *testing.B) *loaded {
	b.Helper()
	db := dbtest.New(b)
	ctx := context.Background()
	exec := func(sql string, arguments ...any) {
		if _, err := db.Owner().Exec(ctx, sql, arguments...); err != nil {
			b.Fatal(err)
		}
	}
	exec("ALTER ROLE ration_service IN DATABASE " + pgx.Identifier{db.Name}.Sanitize() + " SET statement_timeout = '10s'")
	store := open(b, db)
	change, err := policy.ParseChange([]byte(`{"match": {}, "per": ["account"],
		"limit": {"algorithm": "token_bucket", "capacity": 1000000, "refillTokens": 20, "refillSeconds": 1}}`))
	if err != nil {
		b.Fatal(err)
	}
	installed, _, err := store.Put(ctx, policy.Put{ID: "bench", Change: change, Author: policy.Author{Actor: "benchmark"}})
	if err != nil {
		b.Fatal(err)
	}
	generation, _, err := store.Load(ctx, 0)
	if err != nil {
		b.Fatal(err)
	}
	all := &loaded{store: store, db: db, generation: generation, number: installed.Number, keys: make([]policy.Key, benchKeys(b))}
	for i := range all.keys {
		all.keys[i] = md5.Sum([]byte(strconv.Itoa(i + 1)))
	}
	exec(`INSERT INTO ration.bucket_fast (balance, at, key, shard, policy, version, took)
		SELECT p.idle_balance, p.idle_at, md5(i::text)::uuid, 0, p.number, p.version, 0
		FROM ration.policy AS p, generate_series(1, $1) AS i`, len(all.keys))
	exec("VACUUM ANALYZE ration.bucket_fast")
	return all
}

// benchLane is one connection's work: batches of distinct keys of its own share.
type benchLane struct {
	*loaded
	random  *rand.Rand
	lane    int
	lanes   int
	session *pgstore.Session
	bare    *pgx.Conn
	batch   policy.Batch
	answers policy.Answers
}

func (a *loaded) lane(b *testing.B, lane, lanes, size int) *benchLane {
	b.Helper()
	bare, err := pgx.Connect(context.Background(), a.db.OwnerURL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = bare.Close(context.Background()) })
	l := &benchLane{
		loaded: a, lane: lane, lanes: lanes, session: a.store.NewSession(), bare: bare,
		random: rand.New(rand.NewPCG(uint64(lane), uint64(size))),
	}
	b.Cleanup(l.session.Close)
	l.batch = policy.Batch{Generation: a.generation, Asks: make([]policy.Ask, size)}
	return l
}

// draw fills the batch with keys of the lane's share, ascending.
func (l *benchLane) draw() {
	share := len(l.keys) / l.lanes
	for i := range l.batch.Asks {
		l.batch.Asks[i] = policy.Ask{Key: l.keys[l.random.IntN(share)*l.lanes+l.lane], Policy: l.number, Cost: 1, Count: 1}
	}
	slices.SortFunc(l.batch.Asks, func(a, b policy.Ask) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	l.batch.Asks = slices.CompactFunc(l.batch.Asks, func(a, b policy.Ask) bool { return a.Key == b.Key })
}

// take decides one batch.
func (l *benchLane) take() error {
	l.draw()
	return l.session.Take(context.Background(), &l.batch, &l.answers)
}

// update writes the same rows without deciding anything: what the decision is
// measured against.
func (l *benchLane) update() error {
	l.draw()
	keys := make([]policy.Key, len(l.batch.Asks))
	for i := range keys {
		keys[i] = l.batch.Asks[i].Key
	}
	_, err := l.bare.Exec(context.Background(), `UPDATE ration.bucket_fast AS b SET balance = b.balance - 50000, at = $2, took = 1
		FROM unnest($1::uuid[]) AS k (key) WHERE b.shard = 0 AND b.key = k.key`, keys, time.Now().UnixMicro())
	return err
}

// rate runs calls on every lane at once and gives the keys a second.
func rate(b *testing.B, lanes []*benchLane, calls int, call func(*benchLane) error) float64 {
	b.Helper()
	var wait sync.WaitGroup
	begun := time.Now()
	for _, l := range lanes {
		wait.Go(func() {
			for range calls {
				if err := call(l); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	return float64(calls*len(lanes)*cap(lanes[0].batch.Asks)) / time.Since(begun).Seconds()
}

// BenchmarkTakeAgainstBareUpdate compares, in turns of one run, take_v1 with a
// bare set-based UPDATE of the same rows.
func BenchmarkTakeAgainstBareUpdate(b *testing.B) {
	const batch, turn = 128, 100
	all := newLoaded(b)
	for _, lanes := range []int{1, 2} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			working := make([]*benchLane, lanes)
			for i := range working {
				working[i] = all.lane(b, i, lanes, batch)
			}
			var take, bare float64
			rounds := 0.0
			for b.Loop() {
				bare += rate(b, working, turn, (*benchLane).update)
				take += rate(b, working, turn, (*benchLane).take)
				rounds++
			}
			b.ReportMetric(bare/rounds, "bare/s")
			b.ReportMetric(take/rounds, "take/s")
			b.ReportMetric(take/bare, "take/bare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkTakeByBatchSize shows what a shared round trip is worth.
func BenchmarkTakeByBatchSize(b *testing.B) {
	all := newLoaded(b)
	for _, size := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			lane := all.lane(b, 0, 1, size)
			for b.Loop() {
				if err := lane.take(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
}

// BenchmarkTakeDenied decides keys that hold nothing: a denial writes nothing.
func BenchmarkTakeDenied(b *testing.B) {
	all := newLoaded(b)
	for _, sql := range []string{
		"UPDATE ration.bucket_fast SET balance = 0, at = at + 86400000000", // ahead of the clock: nothing is earned
		"VACUUM (FULL, ANALYZE) ration.bucket_fast",                        // the rows stand as if they had been loaded so
	} {
		if _, err := all.db.Owner().Exec(context.Background(), sql); err != nil {
			b.Fatal(err)
		}
	}
	lane := all.lane(b, 0, 1, 128)
	for b.Loop() {
		if err := lane.take(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*128)/b.Elapsed().Seconds(), "decisions/s")
}
