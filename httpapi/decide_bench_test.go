package httpapi_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

// fixedDecider costs nothing, so that the benchmarks measure the handler.
type fixedDecider struct{ decision policy.Decision }

func (d *fixedDecider) Decide(context.Context, *policy.Request) (policy.Decision, error) {
	return d.decision, nil
}

func (d *fixedDecider) DecideBatch(_ context.Context, _ []*policy.Request, results []policy.Result) {
	for i := range results {
		results[i].Decision = d.decision
	}
}

func (d *fixedDecider) Usage(context.Context, *policy.Request) (policy.Usage, error) {
	return policy.Usage{}, nil
}

// leanWriter is a response writer that keeps nothing.
type leanWriter struct{ header http.Header }

func (w *leanWriter) Header() http.Header         { return w.header }
func (w *leanWriter) WriteHeader(int)             {}
func (w *leanWriter) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkDecisions measures the handler alone, per call.
func BenchmarkDecisions(b *testing.B) {
	const item = `{"verifiedAccount":"account-12345","operation":"report.create","cost":5,"policyVersion":7}`
	hundred := `{"decisions":[` + strings.TrimSuffix(strings.Repeat(item+",", 100), ",") + `]}`
	for _, c := range []struct {
		name, target, body string
		decision           policy.Decision
	}{
		{"allowed", "/internal/rate-decisions", item, allowed(reportCreate(), 35, 250_000)},
		{"denied", "/internal/rate-decisions", item, denied(reportCreate(), 3, 100_000, 1_850_000)},
		{"batch-of-100", "/internal/rate-decisions/batch", hundred, allowed(reportCreate(), 35, 250_000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			metrics, err := httpapi.NewMetrics(prometheus.NewRegistry())
			if err != nil {
				b.Fatal(err)
			}
			handler := httpapi.NewDecisions(httpapi.DecisionsConfig{
				Site: httpapi.Site{Metrics: metrics, Jitter: 0.1}, Decider: &fixedDecider{c.decision},
			})
			body := []byte(c.body)
			reader := bytes.NewReader(body)
			request := httptest.NewRequest(http.MethodPost, c.target, nil)
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("X-Request-Id", "example-1")
			request.ContentLength = int64(len(body))
			request.Body = io.NopCloser(reader)
			writer := &leanWriter{header: make(http.Header, 8)}
			b.ReportAllocs()
			for b.Loop() {
				reader.Reset(body)
				clear(writer.header)
				handler.ServeHTTP(writer, request)
			}
		})
	}
}

// TestDecisionAllocations keeps the hot path lean: three of the allocations
// are the router's context, the rest the parsed request and the headers.
func TestDecisionAllocations(t *testing.T) { //nolint:paralleltest // others would allocate meanwhile
	if raceDetector {
		t.Skip("the race detector allocates too")
	}
	handler := decisionsOf(&fixedDecider{allowed(reportCreate(), 35, 250_000)})
	body := []byte(exampleRequest)
	reader := bytes.NewReader(body)
	request := httptest.NewRequest(http.MethodPost, "/internal/rate-decisions", nil)
	request.Header.Set("Content-Type", "application/json")
	request.Body = io.NopCloser(reader)
	writer := &leanWriter{header: make(http.Header, 8)}
	const allocationsMax = 12 // 9 when this was written; room for another toolchain
	allocations := testing.AllocsPerRun(100, func() {
		reader.Reset(body)
		clear(writer.header)
		handler.ServeHTTP(writer, request)
	})
	if allocations > allocationsMax {
		t.Errorf("%v allocations per decision, want at most %d", allocations, allocationsMax)
	}
}
