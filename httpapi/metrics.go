package httpapi

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rationhq/ration/policy"
)

// Metrics counts what the listeners answer. Its labels are routes, methods,
// codes and sources, never a subject, a key or an address.
type Metrics struct {
	requests   *prometheus.CounterVec
	durations  *prometheus.HistogramVec
	mismatches prometheus.Counter

	// Children are resolved once: looking one up costs more than counting.
	decided   []prometheus.Observer // single decisions by policy.Source
	undecided prometheus.Observer   // a single request that got no decision
	batches   prometheus.Observer   // a whole batch
}

// NewMetrics registers the metrics of httpapi. It fails when the registry
// already has one of them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := newMetrics()
	for _, collector := range []prometheus.Collector{m.requests, m.durations, m.mismatches} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("register the metrics of httpapi: %w", err)
		}
	}
	return m, nil
}

func newMetrics() *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ration_http_requests_total",
			Help: "HTTP requests answered, by route template, method and status code.",
		}, []string{"route", "method", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ration_decision_duration_seconds",
			Help: "Time from a request's arrival to its decision, by transport and source; source none: no decision was made, batch: a whole batch.",
			// From a cache's answer to a deadline well past the default of 50 ms.
			Buckets: []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
			// Buckets 10% apart, few enough to keep every series small, and
			// thinned at most hourly so that a scrape never sees them flap.
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  160,
			NativeHistogramMinResetDuration: time.Hour,
		}, []string{"transport", "source"}),
		mismatches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ration_version_mismatch_total",
			Help: "Decisions made under another policy version than the gateway believed in.",
		}),
	}
	for _, source := range [...]policy.Source{policy.FromStore, policy.FromPolicy, policy.FromReplay} {
		m.decided = append(m.decided, m.durations.WithLabelValues("http", source.String()))
	}
	m.undecided = m.durations.WithLabelValues("http", "none")
	m.batches = m.durations.WithLabelValues("http", "batch")
	return m
}

// observeDecision records how long one request took and where its decision
// came from, if it got one.
func (m *Metrics) observeDecision(elapsed time.Duration, source policy.Source, err error) {
	observer := m.undecided
	switch {
	case err != nil:
	case int(source) < len(m.decided):
		observer = m.decided[source]
	default: // a source younger than the list above: right, only slower
		observer = m.durations.WithLabelValues("http", source.String())
	}
	observer.Observe(elapsed.Seconds())
}

// observeVersion counts a decision under another version than the request
// believed in: of the policy it names, else of the tightest. A difference is
// never an exemption.
func (m *Metrics) observeVersion(request *policy.Request, decision *policy.Decision) {
	if request.PolicyVersion == 0 {
		return
	}
	used := decision.Policy
	if request.Policy != "" {
		used = decision.Used(request.Policy)
	}
	if used != nil && used.Version != request.PolicyVersion {
		m.mismatches.Inc()
	}
}

// requestCounter counts the answers of one route and method.
type requestCounter struct {
	codes *prometheus.CounterVec
	// The two answers of the hot path, resolved once.
	ok, denied prometheus.Counter
}

func (m *Metrics) requestCounter(method, route string) requestCounter {
	codes := m.requests.MustCurryWith(prometheus.Labels{"route": route, "method": method})
	return requestCounter{codes: codes, ok: codes.WithLabelValues("200"), denied: codes.WithLabelValues("429")}
}

func (c requestCounter) add(status int) {
	switch status {
	case 200:
		c.ok.Inc()
	case 429:
		c.denied.Inc()
	default:
		c.codes.WithLabelValues(strconv.Itoa(status)).Inc()
	}
}
