package httpapi_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

// stubShadows has a report on version 3 of one policy, the most denied first.
type stubShadows struct{ report policy.ShadowReport }

func (s stubShadows) ShadowReport(_ context.Context, id string, version int, after policy.ShadowCursor, limit int) (policy.ShadowReport, error) {
	report := s.report
	if id != report.ID || version != 0 && version != report.Version {
		return policy.ShadowReport{}, &policy.Error{Code: policy.CodeNotFound, Reason: policy.ReasonNotFound, Detail: "There is no such policy or version."}
	}
	if after.Denied > 0 {
		behind := slices.IndexFunc(report.Keys, func(d policy.ShadowDenials) bool { return d.Denied == after.Denied && d.Key == after.Key })
		report.Keys = report.Keys[behind+1:]
	}
	report.Keys = report.Keys[:min(limit, len(report.Keys))]
	return report, nil
}

func shadowReport() stubShadows {
	denials := func(number byte, who string, denied int64) policy.ShadowDenials {
		return policy.ShadowDenials{Key: policy.Key{number}, Who: who, Denied: denied, FirstAtMicros: nowMicros, LastAtMicros: nowMicros + denied}
	}
	return stubShadows{policy.ShadowReport{
		ID: "report-create", Version: 3, KeyCount: 3, Named: 16,
		ShadowCounts: policy.ShadowCounts{Decided: 1200, Denied: 20, FirstAtMicros: nowMicros - 1, LastAtMicros: nowMicros + 99},
		Keys: []policy.ShadowDenials{
			denials(3, `{"account": "A"}`, 9), denials(1, `{"account": "\"B\""}`, 5), denials(2, `{"account": "C"}`, 2),
		},
	}}
}

func TestShadowReportExchanges(t *testing.T) {
	t.Parallel()
	handlerOf := func(shadows httpapi.Shadows) http.Handler {
		return httpapi.NewAdmin(httpapi.AdminConfig{Policies: new(stubPolicies), Shadows: shadows, Actor: "operator"})
	}
	const one = "/v1/policies/report-create/shadow-report"
	none := stubShadows{policy.ShadowReport{ID: "report-create", Version: 1}}
	for name, e := range map[string]exchange{
		"all":     {handler: handlerOf(shadowReport())},
		"page":    {handler: handlerOf(shadowReport()), target: one + "?limit=1&after=9-03000000000000000000000000000000"},
		"none":    {handler: handlerOf(none)},
		"unknown": {handler: handlerOf(shadowReport()), target: one + "?version=2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e.name, e.method = "shadow-report-"+name, http.MethodGet
			if e.target == "" {
				e.target = one
			}
			e.check(t)
		})
	}
	for _, query := range []string{
		"version=0", "limit=0", "limit=1001", "after=", "after=9", "after=9-03", "after=0-03000000000000000000000000000000",
		"after=x-03000000000000000000000000000000", "after=9-0300000000000000000000000000000000",
	} {
		if answer := call(handlerOf(shadowReport()), http.MethodGet, one+"?"+query, ""); answer.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, answer.Code, answer.Body)
		}
	}
}
