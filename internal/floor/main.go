// Command floor serves the decision handler with the store left out: every
// request is parsed, answered at once and written as always. What it reaches
// under load is what HTTP and JSON alone allow on a machine; `make bench-http`
// measures the real service beside it.
//
// It decides nothing and is not part of the product.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("usage: floor ADDRESS, not %q", arguments)
	}
	metrics, err := httpapi.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		return err
	}
	allowed, err := newAlways()
	if err != nil {
		return err
	}
	server := httpapi.NewServer(httpapi.NewDecisions(httpapi.DecisionsConfig{Site: httpapi.Site{Metrics: metrics}, Decider: allowed}))
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", arguments[0])
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); ctx.Err() == nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// always allows, as a full bucket of the example policy would.
type always struct{ decision policy.Decision }

func newAlways() (*always, error) {
	change, err := policy.ParseChange([]byte(`{"match": {}, "per": ["account"],
		"limit": {"algorithm": "token_bucket", "capacity": 1000000, "refillTokens": 20, "refillSeconds": 1}}`))
	if err != nil {
		return nil, err
	}
	return &always{policy.Decision{
		Policy:  &policy.Installed{Number: 1, ID: "floor", Version: 1, Spec: change.Spec},
		Allowed: true, Remaining: 999_999, AtMicros: time.Now().UnixMicro(), ResetAfterMicros: 50_000,
	}}, nil
}

// Decide allows.
func (a *always) Decide(context.Context, *policy.Request) (policy.Decision, error) {
	return a.decision, nil
}

// DecideBatch allows every item.
func (a *always) DecideBatch(_ context.Context, requests []*policy.Request, results []policy.Result) {
	for i := range requests {
		results[i] = policy.Result{Decision: a.decision}
	}
}

// Usage is of nobody: no limit is measured here.
func (a *always) Usage(context.Context, *policy.Request) (policy.Usage, error) {
	return policy.Usage{}, nil
}
