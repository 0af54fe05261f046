package httpapi_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

// stubExplainer explains by a function, and warns of every policy.
type stubExplainer func(request *policy.Request, only string) (*policy.Explanation, error)

func (s stubExplainer) Explain(_ context.Context, request *policy.Request, only string) (*policy.Explanation, error) {
	return s(request, only)
}

func (s stubExplainer) Review(id string, _ *policy.Spec) []policy.Warning {
	return []policy.Warning{{Name: policy.WarnShadowed, Pointer: "/limit", Detail: "can never deny, as " + id + " tests"}}
}

// explaining is a set of three policies in front of a store in which all keys
// hold 3 tokens.
func explaining(request *policy.Request, only string) (*policy.Explanation, error) {
	report, export, daily := reportCreate(), window("report-export", 1, 5, policy.Account), window("report-daily", 2, 100, policy.Account, policy.User)
	export.Spec.Match[policy.Operation] = policy.Patterns{"export.*", "dump"}
	report.Spec.Costs.Default, daily.Spec.Costs.Default = 5, 1
	var matched policy.Matched
	explanation := policy.Compile(1, []*policy.Installed{report, export, daily}).Explain(request, only, &matched)
	usage := policy.Usage{AtMicros: nowMicros}
	for _, check := range matched.Checks {
		wait := int64(100_000)
		if check.Cost > check.Policy.Spec.Limit.Capacity {
			wait = policy.Never
		}
		usage.Parts = append(usage.Parts, part(check.Policy, 3, wait, 1_850_000))
	}
	explanation.Seen(&usage)
	return explanation, nil
}

func TestExplainExchanges(t *testing.T) {
	t.Parallel()
	handler := httpapi.NewAdmin(httpapi.AdminConfig{Policies: new(stubPolicies), Explainer: stubExplainer(explaining)})
	down := httpapi.NewAdmin(httpapi.AdminConfig{Explainer: stubExplainer(func(*policy.Request, string) (*policy.Explanation, error) {
		return nil, &policy.Error{Code: policy.CodeUnavailable, Reason: policy.ReasonStoreUnavailable, Detail: "The store gives no answer."}
	})})
	for _, e := range []exchange{
		{name: "denied", body: `{"verifiedAccount":"A","operation":"report.create"}`},
		{name: "one-policy", target: "/v1/explain?policy=report-daily", body: `{"verifiedAccount":"A","operation":"report.create"}`},
		{name: "cost", body: `{"verifiedAccount":"A","operation":"report.create","cost":2}`},
		{name: "faulty", body: `{"operation":"report.create"}`},
		{name: "misnamed", target: "/v1/explain?policy=a%20b", body: `{"verifiedAccount":"A","operation":"report.create"}`},
		{name: "store-down", handler: down, body: `{"verifiedAccount":"A","operation":"report.create"}`},
		{
			name: "put-warned", method: http.MethodPut, target: "/v1/policies/report-create", body: spec(40),
			headers: []string{"Content-Type", "application/json", "If-None-Match", "*"},
		},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.name = "explain-" + e.name
			if e.handler == nil {
				e.handler = handler
			}
			if e.target == "" {
				e.target = "/v1/explain"
			}
			e.check(t)
		})
	}
}
