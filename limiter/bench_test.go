package limiter_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/policy"
)

// instant is a session that admits everybody at once: what is left is the
// limiter itself.
type instant struct{}

func (instant) Take(_ context.Context, batch *policy.Batch, answers *policy.Answers) error {
	answers.Stale, answers.Asks = false, answers.Asks[:0]
	for i := range batch.Asks {
		answers.Asks = append(answers.Asks, policy.Answer{Admitted: batch.Asks[i].Count})
	}
	return nil
}

func (s instant) TakeNew(ctx context.Context, _ policy.Hold, batch *policy.Batch, answers *policy.Answers) error {
	return s.Take(ctx, batch, answers)
}

func (instant) Decide(_ context.Context, _ policy.Hold, claims *policy.Claims, verdicts *policy.Verdicts) error {
	verdicts.Stale, verdicts.Verdicts = false, verdicts.Verdicts[:0]
	for i := range claims.Claims {
		parts := make([]policy.Part, 0, len(claims.Claims[i].Checks))
		for _, check := range claims.Claims[i].Checks {
			parts = append(parts, policy.Part{Policy: check.Policy.Number, Version: check.Policy.Version, Allowed: true})
		}
		verdicts.Verdicts = append(verdicts.Verdicts, policy.Verdict{Status: policy.ClaimDecided, Allowed: true, Parts: parts})
	}
	return nil
}

func (instant) Connect(context.Context) error         { return nil }
func (instant) Recover(context.Context) (bool, error) { return false, nil }
func (instant) Close()                                {}

// startInstant runs two lanes of instant sessions.
func startInstant(b *testing.B) *running {
	b.Helper()
	s := newStore()
	s.install(b, "op", 1000, "")
	return start(b, s, func(c *limiter.Config) {
		c.NewSession = func() limiter.Session { return instant{} }
		c.Lanes, c.QueueMax, c.BatchAsksMax, c.DecisionTimeout = 2, 10_000, 256, 10*time.Second
	})
}

func BenchmarkDecide(b *testing.B) {
	r := startInstant(b)
	var workers atomic.Int64
	b.SetParallelism(64)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		req := request("op", "account-"+strconv.FormatInt(workers.Add(1), 10), 1)
		for pb.Next() {
			if _, err := r.Decide(context.Background(), req); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkDecideBatch100(b *testing.B) {
	r := startInstant(b)
	requests := make([]*policy.Request, 100)
	for i := range requests {
		requests[i] = request("op", "account-"+strconv.Itoa(i), 1)
	}
	results := make([]policy.Result, len(requests))
	b.ReportAllocs()
	for b.Loop() {
		r.DecideBatch(context.Background(), requests, results)
		if results[0].Err != nil {
			b.Fatal(results[0].Err)
		}
	}
}
