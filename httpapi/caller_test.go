package httpapi_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

// stubCallers knows callers by the word in their Authorization header.
type stubCallers map[string]policy.Caller

func (s stubCallers) Authenticate(r *http.Request) (policy.Caller, error) {
	word := r.Header.Get("Authorization")
	if word == "outage" {
		return policy.Caller{}, &policy.Error{Code: policy.CodeUnavailable, Reason: policy.ReasonStoreUnavailable}
	}
	caller, known := s[word]
	if !known {
		return policy.Caller{}, &policy.Error{Code: policy.CodeUnauthenticated, Reason: policy.ReasonUnauthenticated, Detail: "Say who you are."}
	}
	return caller, nil
}

// callers has one of each kind.
func callers() stubCallers {
	return stubCallers{
		"viewer":   {Name: "vera", Role: policy.Viewer},
		"operator": {Name: "otto", Role: policy.Operator},
		"admin":    {Name: "ann", Role: policy.Admin},
		"gateway":  {Name: "edge", Gateway: &policy.Gateway{Name: "edge"}},
	}
}

// kinds are the callers of the matrix in the order of its columns.
var kinds = []string{"", "unknown", "gateway", "viewer", "operator", "admin"}

// adminRoutes says who may do what on the admin listener: of every route the
// least role.
var adminRoutes = map[string]policy.Role{
	"GET /v1/policies":                               policy.Viewer,
	"GET /v1/policies/{policyId}":                    policy.Viewer,
	"PUT /v1/policies/{policyId}":                    policy.Operator,
	"DELETE /v1/policies/{policyId}":                 policy.Admin,
	"POST /v1/policies/{policyId}/rollback":          policy.Operator,
	"GET /v1/policies/{policyId}/versions":           policy.Viewer,
	"GET /v1/policies/{policyId}/versions/{version}": policy.Viewer,
	"GET /v1/policies/{policyId}/installations":      policy.Viewer,
	"GET /v1/policies/{policyId}/shadow-report":      policy.Operator,
	"GET /v1/policies/{policyId}/overrides":          policy.Operator,
	"PUT /v1/policies/{policyId}/overrides":          policy.Operator,
	"DELETE /v1/policies/{policyId}/overrides":       policy.Operator,
	"GET /v1/kill-switch":                            policy.Viewer,
	"POST /v1/kill-switch":                           policy.Admin,
	"DELETE /v1/kill-switch":                         policy.Admin,
	"GET /v1/buckets":                                policy.Operator,
	"POST /v1/buckets/reset":                         policy.Operator,
	"POST /v1/buckets/rebase":                        policy.Operator,
	"GET /v1/audit":                                  policy.Viewer,
	"POST /v1/explain":                               policy.Viewer,
	"GET /v1/stores":                                 policy.Viewer,
}

// decisionRoutes are those of the decision listener, all for gateways.
var decisionRoutes = map[string]bool{
	"POST /internal/rate-decisions":                          true,
	"POST /internal/rate-decisions/batch":                    true,
	"GET /internal/rate-decisions/{operationId}":             true,
	"POST /internal/rate-decisions/{operationId}/settlement": true,
	"DELETE /internal/slots/{slotId}":                        true,
	"POST /internal/slots/{slotId}/renewal":                  true,
	"GET /internal/usage":                                    true,
}

// The matrix: every route of both listeners under every kind of caller. A
// route without an entry above fails, and so does an entry without a route.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	operators := httpapi.NewAdmin(httpapi.AdminConfig{Policies: &stubPolicies{}, Operators: callers()})
	seen := walk(t, operators, func(route string) map[string]int {
		least, known := adminRoutes[route]
		if !known {
			t.Errorf("%s: say in adminRoutes which role it takes", route)
		}
		want := map[string]int{"": 401, "unknown": 401, "gateway": 403}
		for role := policy.Viewer; role < least; role++ {
			want[role.String()] = 403
		}
		return want
	})
	for route := range adminRoutes {
		if !seen[route] {
			t.Errorf("adminRoutes has %s, the listener does not", route)
		}
	}

	gateways := httpapi.NewDecisions(httpapi.DecisionsConfig{
		Decider: always(policy.Decision{}), Operations: &stubOperations{}, Gateways: callers(),
	})
	seen = walk(t, gateways, func(route string) map[string]int {
		if !decisionRoutes[route] {
			t.Errorf("%s is not in decisionRoutes", route)
		}
		return map[string]int{"": 401, "unknown": 401, "viewer": 403, "operator": 403, "admin": 403}
	})
	for route := range decisionRoutes {
		if !seen[route] {
			t.Errorf("decisionRoutes has %s, the listener does not", route)
		}
	}
}

// walk calls every route of a listener as every kind of caller and checks who
// is turned away, with which status; refused has those. A caller who is let
// through is told what is wrong with the request, for it is empty.
func walk(t *testing.T, handler http.Handler, refused func(route string) map[string]int) (seen map[string]bool) {
	t.Helper()
	seen = map[string]bool{}
	err := chi.Walk(handler.(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		name := strings.Replace(method, http.MethodHead, http.MethodGet, 1) + " " + route
		want := refused(name)
		seen[name] = true
		path := strings.NewReplacer("{", "", "}", "").Replace(route)
		for _, kind := range kinds {
			answer := call(handler, method, path, "", "Authorization", kind)
			got := answer.Code
			if got != http.StatusUnauthorized && got != http.StatusForbidden {
				got = 0
			}
			if got != want[kind] {
				t.Errorf("%s %s as %q: %d, want %s", method, route, kind, answer.Code, cmp.Or(http.StatusText(want[kind]), "to be let through"))
			}
			if (got == http.StatusUnauthorized) != (answer.Header().Get("WWW-Authenticate") != "") {
				t.Errorf("%s %s as %q: %d with WWW-Authenticate %q", method, route, kind, answer.Code, answer.Header().Get("WWW-Authenticate"))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// The audit is told who the caller is, not what the request says.
func TestAuthorIsTheCaller(t *testing.T) {
	t.Parallel()
	policies := &stubPolicies{}
	handler := httpapi.NewAdmin(httpapi.AdminConfig{Policies: policies, Operators: callers()})
	answer := call(handler, http.MethodPut, "/v1/policies/p", tokenBucketBody, "Authorization", "operator",
		"Content-Type", "application/json", "If-None-Match", "*", "X-Request-Id", "example-1")
	if answer.Code != http.StatusCreated {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	want := policy.Author{Actor: "otto", Role: policy.Operator, RequestID: "example-1"}
	if got := policies.puts[0].Author; got != want {
		t.Errorf("the author is %+v, want %+v", got, want)
	}
}

const tokenBucketBody = `{"match":{"operations":["a"]},"per":["account"],` +
	`"limit":{"algorithm":"token_bucket","capacity":1,"refillTokens":1,"refillSeconds":1}}`

// An operation id is its gateway's own, and what a gateway may not speak for is
// refused before anybody is asked: of a batch the one item.
func TestGatewaysKeepToTheirOwn(t *testing.T) {
	t.Parallel()
	scoped := &policy.Gateway{Name: "edge", Scope: policy.GatewayScope{policy.Account: {"acme"}, policy.Operation: {"report.*"}}}
	decider, operations := always(allowed(reportCreate(), 35, 250_000)), &stubOperations{settled: policy.Settled{Status: policy.SettleDone}}
	handler := httpapi.NewDecisions(httpapi.DecisionsConfig{
		Decider: decider, Operations: operations, Gateways: stubCallers{"edge": {Name: "edge", Gateway: scoped}},
	})
	as := []string{"Authorization", "edge", "Content-Type", "application/json"}
	const inside, outside = `{"verifiedAccount":"acme","operation":"report.create"}`, `{"verifiedAccount":"beta","operation":"login"}`

	answer := call(handler, http.MethodPost, "/internal/rate-decisions", outside, as...)
	var refused struct {
		Type   string
		Errors []struct{ Pointer string }
	}
	err := json.Unmarshal(answer.Body.Bytes(), &refused)
	if err != nil || answer.Code != http.StatusForbidden || !strings.HasSuffix(refused.Type, "/gateway-scope") || len(refused.Errors) != 2 {
		t.Errorf("outside: %d %s (%v)", answer.Code, answer.Body, err)
	}
	answer = call(handler, http.MethodPost, "/internal/rate-decisions/batch", `{"decisions":[`+outside+`,`+inside+`]}`, as...)
	var batch struct{ Decisions []struct{ Status int } }
	if err := json.Unmarshal(answer.Body.Bytes(), &batch); err != nil || len(batch.Decisions) != 2 ||
		batch.Decisions[0].Status != http.StatusForbidden || batch.Decisions[1].Status != http.StatusOK {
		t.Errorf("batch: %d %s (%v)", answer.Code, answer.Body, err)
	}
	if len(decider.asked) != 1 || decider.asked[0].Gateway != "edge" {
		t.Errorf("asked: %+v", decider.asked)
	}
	for target, status := range map[string]int{
		"/internal/usage?verifiedAccount=beta&operation=report.read": http.StatusForbidden,
		"/internal/usage?verifiedAccount=acme":                       http.StatusForbidden,
		"/internal/usage?verifiedAccount=acme&operation=report.read": http.StatusOK,
		"/internal/rate-decisions/op-1?verifiedAccount=beta":         http.StatusForbidden,
		"/internal/rate-decisions/op-1?verifiedAccount=acme":         http.StatusNotFound,
	} {
		if answer := call(handler, http.MethodGet, target, "", as...); answer.Code != status {
			t.Errorf("%s: %d %s, want %d", target, answer.Code, answer.Body, status)
		}
	}
	call(handler, http.MethodPost, "/internal/rate-decisions/op-1/settlement", `{"verifiedAccount":"beta","actualCost":1}`, as...)
	call(handler, http.MethodPost, "/internal/rate-decisions/op-1/settlement", `{"verifiedAccount":"acme","actualCost":1}`, as...)
	want := policy.OperationKeyOf("edge", "acme", "op-1")
	if len(operations.settlements) != 1 || operations.settlements[0].Operation != want {
		t.Errorf("settled: %+v", operations.settlements)
	}
}

// Who cannot be asked who a caller is lets nobody in.
func TestAnOutageLetsNobodyIn(t *testing.T) {
	t.Parallel()
	decider := always(policy.Decision{})
	handler := httpapi.NewDecisions(httpapi.DecisionsConfig{Decider: decider, Gateways: callers()})
	answer := post(handler, "/internal/rate-decisions", `{"user":"u","operation":"a"}`, "Authorization", "outage")
	if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") == "" || decider.calls() > 0 {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

// Changes come at a bounded pace, by operator; reading does not count.
func TestChangesOfOneOperatorAreBounded(t *testing.T) {
	t.Parallel()
	handler := httpapi.NewAdmin(httpapi.AdminConfig{Policies: &stubPolicies{}, Operators: callers()})
	change := func(as string) *httptest.ResponseRecorder {
		return call(handler, http.MethodPut, "/v1/policies/p", "", "Authorization", as)
	}
	refused := change("operator")
	for range 2000 { // far more than a burst
		if refused.Code == http.StatusTooManyRequests {
			break
		}
		refused = change("operator")
	}
	if refused.Code != http.StatusTooManyRequests || refused.Header().Get("Retry-After") != "1" ||
		!strings.Contains(refused.Body.String(), "/too-many-changes") {
		t.Errorf("%d %v %s", refused.Code, refused.Header(), refused.Body)
	}
	if other := change("admin"); other.Code != http.StatusPreconditionRequired {
		t.Errorf("another operator: %d", other.Code)
	}
	if read := call(handler, http.MethodGet, "/v1/policies", "", "Authorization", "operator"); read.Code != http.StatusOK {
		t.Errorf("reading: %d", read.Code)
	}
}
