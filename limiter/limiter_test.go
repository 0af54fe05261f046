package limiter_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// timeout is the decision timeout of the tests' limiters.
const timeout = 50 * time.Millisecond

// retention is how long the tests' limiters want outcomes kept.
const retention = 10 * time.Minute

// patient is for tests outside a bubble, whose time passes by itself.
func patient(c *limiter.Config) { c.DecisionTimeout = time.Minute }

// running is a limiter at work on a store.
type running struct {
	*limiter.Limiter

	t        testing.TB
	registry *prometheus.Registry
	stop     func() // ends Run and waits for it
}

// start runs a limiter with one lane of each durability, unless change says
// otherwise, and waits until its policies are loaded. The test's end stops it.
func start(t testing.TB, s *store, changes ...func(*limiter.Config)) *running {
	t.Helper()
	r := startUnloaded(t, s, changes...)
	if err := r.AwaitLoaded(t.Context()); err != nil {
		t.Fatalf("load policies: %v", err)
	}
	return r
}

// startUnloaded is start without the wait.
func startUnloaded(t testing.TB, s *store, changes ...func(*limiter.Config)) *running {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	metrics, err := limiter.NewMetrics(registry)
	if err != nil {
		t.Fatalf("metrics: %v", err)
	}
	config := limiter.Config{
		NewSession: s.newSession, Policies: s, InForce: func(int64, []int64) {}, Reports: s, Lanes: 1, QueueMax: 100, BatchAsksMax: 16,
		DecisionTimeout: timeout, OperationRetention: retention, Logger: slog.New(slog.DiscardHandler), Metrics: metrics,
	}
	for _, change := range changes {
		change(&config)
	}
	l, err := limiter.New(config)
	if err != nil {
		t.Fatalf("make a limiter: %v", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(stop)
	return &running{Limiter: l, t: t, registry: registry, stop: stop}
}

// request is one call's charge of an operation by an account.
func request(operation, account string, cost int64) *policy.Request {
	var r policy.Request
	r.Values[policy.Operation], r.Values[policy.Account], r.Cost = operation, account, cost
	return &r
}

// pending is a request that has been made in a goroutine of its own.
type pending struct {
	t      testing.TB
	result chan policy.Result
}

// ask makes a request and goes on.
func (r *running) ask(request *policy.Request) *pending {
	return r.askUnder(context.Background(), request)
}

func (r *running) askUnder(ctx context.Context, request *policy.Request) *pending {
	p := &pending{t: r.t, result: make(chan policy.Result, 1)}
	go func() {
		decision, err := r.Decide(ctx, request)
		p.result <- policy.Result{Decision: decision, Err: err}
	}()
	return p
}

// is expects the answer: allowed or not, with so many tokens left.
func (p *pending) is(allowed bool, remaining int64) policy.Decision {
	p.t.Helper()
	got := <-p.result
	if got.Err != nil || got.Decision.Allowed != allowed || got.Decision.Remaining != remaining {
		p.t.Errorf("got %+v, %v; want allowed %t with %d remaining", got.Decision, got.Err, allowed, remaining)
	}
	return got.Decision
}

// fails expects a problem.
func (p *pending) fails(reason policy.Reason) error {
	p.t.Helper()
	got := <-p.result
	hasReason(p.t, got.Err, reason)
	return got.Err
}

// hasReason expects an error of that reason.
func hasReason(t testing.TB, err error, reason policy.Reason) {
	t.Helper()
	if problem, ok := errors.AsType[*policy.Error](err); !ok || problem.Reason != reason {
		t.Errorf("got error %v, want %s", err, reason)
	}
}

// isUnsure says whether an error says that a charge is not known.
func isUnsure(err error) bool {
	store, ok := errors.AsType[*policy.StoreError](err)
	return ok && store.Fault == policy.StoreUnsure
}

// counted reads a counter or gauge, or the number of a histogram's
// observations; labels are pairs of name and value.
func (r *running) counted(name string, labels ...string) float64 {
	r.t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		r.t.Fatalf("gather metrics: %v", err)
	}
	total := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			has := map[string]string{}
			for _, pair := range metric.GetLabel() {
				has[pair.GetName()] = pair.GetValue()
			}
			matches := true
			for i := 0; i < len(labels); i += 2 {
				matches = matches && has[labels[i]] == labels[i+1]
			}
			if matches {
				total += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return total
}

// isCounted expects a metric's value; see counted.
func (r *running) isCounted(want float64, name string, labels ...string) {
	r.t.Helper()
	if got := r.counted(name, labels...); got != want {
		r.t.Errorf("%s%q is %v, want %v", name, labels, got, want)
	}
}
