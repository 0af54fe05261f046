package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

// check is a named condition with a fixed result.
func check(name string, err error) httpapi.Check {
	return httpapi.Check{Name: name, Probe: func(context.Context) error { return err }}
}

func observabilityOf(checks ...httpapi.Check) http.Handler {
	return httpapi.NewObservability(httpapi.ObservabilityConfig{Gatherer: prometheus.NewRegistry(), Checks: checks})
}

func TestHealthExchanges(t *testing.T) {
	t.Parallel()
	draining := &policy.Error{Code: policy.CodeUnavailable, Reason: policy.ReasonOverloaded, Detail: "This instance is draining."}
	store := check("store", errors.New("dial tcp 10.0.0.1:5432: refused"))
	store.WarnOnly = true
	ready := observabilityOf(check("schema", nil), check("policies", nil), check("draining", nil), store)
	for _, e := range []exchange{
		{name: "livez", handler: observabilityOf(check("schema", errors.New("gone"))), target: "/livez"},
		{name: "readyz", handler: ready, target: "/readyz"},
		{name: "readyz-verbose", handler: ready, target: "/readyz?verbose"},
		{name: "readyz-draining", handler: observabilityOf(check("schema", nil), check("draining", draining), store), target: "/readyz"},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.name, e.method = "health-"+e.name, http.MethodGet
			e.check(t)
		})
	}
}

func TestLivenessAsksNobody(t *testing.T) {
	t.Parallel()
	asked := false
	handler := observabilityOf(httpapi.Check{Name: "store", Probe: func(context.Context) error { asked = true; return nil }})
	if answer := call(handler, http.MethodGet, "/livez", ""); answer.Code != http.StatusOK || asked {
		t.Errorf("status %d, asked %v; want 200 and nobody asked", answer.Code, asked)
	}
}

// TestMetricsCountWhatWasAnswered reads the exposition as Prometheus does.
func TestMetricsCountWhatWasAnswered(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics, err := httpapi.NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := httpapi.NewMetrics(registry); err == nil {
		t.Error("the same metrics were registered twice")
	}
	decider := &stubDecider{answer: func(_ context.Context, request *policy.Request) (policy.Decision, error) {
		switch request.Values[policy.Account] {
		case "A":
			return allowed(reportCreate(), 35, 250_000), nil
		case "B":
			return denied(reportCreate(), 0, 1, 1), nil
		}
		return policy.Decision{}, &policy.Error{Code: policy.CodeNotFound, Reason: policy.ReasonNoPolicy}
	}}
	site := httpapi.Site{Metrics: metrics}
	decisions := httpapi.NewDecisions(httpapi.DecisionsConfig{Site: site, Decider: decider})
	for _, account := range []string{"A", "A", "B", "subject-of-nobody"} {
		post(decisions, "/internal/rate-decisions", `{"verifiedAccount":"`+account+`","operation":"report.create","policyVersion":7}`)
	}
	const item = `{"verifiedAccount":"A","operation":"report.create","policyVersion":6}`
	post(decisions, "/internal/rate-decisions", item)
	post(decisions, "/internal/rate-decisions/batch", `{"decisions":[`+item+`,`+item+`]}`)
	// Another policy's version is no mismatch.
	post(decisions, "/internal/rate-decisions", `{"verifiedAccount":"A","operation":"report.create","policyVersion":6,"policy":"other"}`)
	call(decisions, "BREW", "/internal/coffee/subject-of-nobody", "")

	scraped := call(httpapi.NewObservability(httpapi.ObservabilityConfig{Site: site, Gatherer: registry}), http.MethodGet, "/metrics", "").Body.String()
	for _, line := range []string{
		`ration_http_requests_total{code="200",method="POST",route="/internal/rate-decisions"} 4`,
		`ration_http_requests_total{code="429",method="POST",route="/internal/rate-decisions"} 1`,
		`ration_http_requests_total{code="404",method="POST",route="/internal/rate-decisions"} 1`,
		`ration_http_requests_total{code="404",method="other",route="unmatched"} 1`,
		`ration_decision_duration_seconds_count{source="store",transport="http"} 5`,
		`ration_decision_duration_seconds_count{source="none",transport="http"} 1`,
		`ration_decision_duration_seconds_count{source="batch",transport="http"} 1`,
		`ration_version_mismatch_total 3`,
	} {
		if !strings.Contains(scraped, line+"\n") {
			t.Errorf("missing: %s\nin:\n%s", line, scraped)
		}
	}
	if strings.Contains(scraped, "subject-of-nobody") {
		t.Error("a subject stands in the metrics")
	}
}

// TestVersionsAreComparedPolicyByPolicy: of several policies, the one that the
// gateway names is meant, else the tightest.
func TestVersionsAreComparedPolicyByPolicy(t *testing.T) {
	t.Parallel()
	report, perIP := reportCreate(), window("per-ip", 3, 100, policy.IP)
	decision := of(allowed(report, 35, 250_000), part(perIP, 12, 0, 9_500_000), part(report, 35, 0, 250_000))
	for believed, want := range map[string]int{
		`"policyVersion":7`:                          0,
		`"policyVersion":6`:                          1,
		`"policyVersion":7,"policy":"per-ip"`:        1,
		`"policyVersion":3,"policy":"per-ip"`:        0,
		`"policyVersion":1,"policy":"another"`:       0,
		`"policyVersion":6,"policy":"report-create"`: 1,
	} {
		registry := prometheus.NewRegistry()
		metrics, err := httpapi.NewMetrics(registry)
		if err != nil {
			t.Fatal(err)
		}
		site := httpapi.Site{Metrics: metrics}
		post(httpapi.NewDecisions(httpapi.DecisionsConfig{Site: site, Decider: always(decision)}),
			"/internal/rate-decisions", `{"verifiedAccount":"A","operation":"report.create",`+believed+`}`)
		scraped := call(httpapi.NewObservability(httpapi.ObservabilityConfig{Site: site, Gatherer: registry}), http.MethodGet, "/metrics", "").Body.String()
		if !strings.Contains(scraped, fmt.Sprintf("ration_version_mismatch_total %d\n", want)) {
			t.Errorf("%s: not %d mismatches", believed, want)
		}
	}
}
