package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

// problemBody is what tests read of a problem.
type problemBody struct {
	Type   string
	Status int
	Detail string
	Errors []struct{ Pointer, Detail string }
}

func readProblem(t *testing.T, answer *httptest.ResponseRecorder) problemBody {
	t.Helper()
	var problem problemBody
	if err := json.Unmarshal(answer.Body.Bytes(), &problem); err != nil {
		t.Fatalf("status %d with a body that is no problem: %v: %q", answer.Code, err, answer.Body)
	}
	if problem.Status != answer.Code {
		t.Errorf("the problem says status %d, the answer %d", problem.Status, answer.Code)
	}
	if got := answer.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("content type %q, want application/problem+json", got)
	}
	return problem
}

// TestBadInputIsNamedAndNeverDecided holds every kind of bad input: none
// reaches the decider, and where a member is at fault it is named.
func TestBadInputIsNamedAndNeverDecided(t *testing.T) {
	t.Parallel()
	const rest = `"verifiedAccount":"A","operation":"report.create"`
	long := strings.Repeat("a", policy.TextBytesMax+1)
	for _, c := range []struct {
		name, body string
		status     int
		pointer    string // "" when the fault is no member's
	}{
		{"duplicate cost", `{` + rest + `,"cost":100,"cost":1}`, 400, "#/cost"},
		{"cost in two spellings", `{` + rest + `,"cost":1,"Cost":100}`, 400, "#/Cost"},
		{"cost in capitals", `{` + rest + `,"COST":1}`, 400, "#/COST"},
		{"duplicate operation id", `{` + rest + `,"operationId":"a","operationId":"b"}`, 400, "#/operationId"},
		{"two objects", `{` + rest + `}{` + rest + `}`, 400, ""},
		{"trailing text", `{` + rest + `} x`, 400, ""},
		{"unknown member", `{` + rest + `,"costt":50}`, 400, "#/costt"},
		{"null body", `null`, 400, ""},
		{"array", `[]`, 400, ""},
		{"string", `""`, 400, ""},
		{"empty", ``, 400, ""},
		{"null cost", `{` + rest + `,"cost":null}`, 400, "#/cost"},
		{"byte-order mark", "\xef\xbb\xbf{" + rest + `}`, 400, ""},
		{"broken UTF-8", `{"verifiedAccount":"` + "\xff\xfe" + `","operation":"report.create"}`, 400, ""},
		{"lone surrogate", `{"verifiedAccount":"\ud800","operation":"report.create"}`, 400, ""},
		{"NUL", `{"verifiedAccount":"a\u0000b","operation":"report.create"}`, 400, "#/verifiedAccount"},
		{"raw NUL", "{\"verifiedAccount\":\"a\x00b\",\"operation\":\"report.create\"}", 400, ""},
		{"empty account", `{"verifiedAccount":"","operation":"report.create"}`, 400, "#/verifiedAccount"},
		{"long account", `{"verifiedAccount":"` + long + `","operation":"report.create"}`, 400, "#/verifiedAccount"},
		{"account of 300 bytes", `{"verifiedAccount":"` + strings.Repeat("ä", 150) + `","operation":"report.create"}`, 400, "#/verifiedAccount"},
		{"account of 3,000 bytes", `{"verifiedAccount":"` + strings.Repeat("x", 3000) + `","operation":"report.create"}`, 400, "#/verifiedAccount"},
		{"long operation id", `{` + rest + `,"operationId":"` + long + `"}`, 400, "#/operationId"},
		{"long policy name", `{` + rest + `,"policyVersion":1,"policy":"` + long + `"}`, 400, "#/policy"},
		{"huge cost", `{` + rest + `,"cost":1e400}`, 400, "#/cost"},
		{"text cost", `{` + rest + `,"cost":"1"}`, 400, "#/cost"},
		{"fraction", `{` + rest + `,"cost":1.5}`, 400, "#/cost"},
		{"negative cost", `{` + rest + `,"cost":-1}`, 400, "#/cost"},
		{"zero cost", `{` + rest + `,"cost":0}`, 400, "#/cost"},
		{"cost of 2^63", `{` + rest + `,"cost":9223372036854775808}`, 400, "#/cost"},
		{"no identity", `{"operation":"report.create"}`, 400, ""},
		{"address with text", `{"ip":"unknown","operation":"report.create"}`, 400, "#/ip"},
		{"empty address", `{"ip":"","operation":"report.create"}`, 400, "#/ip"},
		{"address with leading zero", `{"ip":"192.0.2.01","operation":"report.create"}`, 400, "#/ip"},
		{"address with zone", `{"ip":"fe80::1%eth0","operation":"report.create"}`, 400, "#/ip"},
		{"megabyte", `{"verifiedAccount":"` + strings.Repeat("a", 1<<20) + `","operation":"report.create"}`, 413, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			decider := failing(errors.New("not to be asked"))
			problem := readProblem(t, post(decisionsOf(decider), "/internal/rate-decisions", c.body))
			if problem.Status != c.status {
				t.Errorf("status %d, want %d: %+v", problem.Status, c.status, problem)
			}
			if c.pointer != "" && (len(problem.Errors) == 0 || problem.Errors[0].Pointer != c.pointer) {
				t.Errorf("faults %+v, want the first at %s", problem.Errors, c.pointer)
			}
			if decider.calls() > 0 {
				t.Error("the decider was asked")
			}
		})
	}
}

func TestWhitespaceAroundARequestIsServed(t *testing.T) {
	t.Parallel()
	answer := post(decisionsOf(always(allowed(reportCreate(), 35, 250_000))), "/internal/rate-decisions", "\n "+exampleRequest+"\n \n")
	if answer.Code != http.StatusOK {
		t.Errorf("status %d, want 200: %s", answer.Code, answer.Body)
	}
}

func TestTextsOfTheLargestLengthAreDistinct(t *testing.T) {
	t.Parallel()
	decider := always(allowed(reportCreate(), 35, 250_000))
	handler := decisionsOf(decider)
	head := strings.Repeat("k", policy.TextBytesMax-1)
	for _, last := range []string{"a", "b"} {
		body := fmt.Sprintf(`{"verifiedAccount":%q,"operation":"report.create"}`, head+last)
		if answer := post(handler, "/internal/rate-decisions", body); answer.Code != http.StatusOK {
			t.Errorf("status %d, want 200: %s", answer.Code, answer.Body)
		}
	}
	if a, b := decider.asked[0].Values[policy.Account], decider.asked[1].Values[policy.Account]; a == b {
		t.Error("two accounts that differ in the last byte are one")
	}
}

func TestContentTypes(t *testing.T) {
	t.Parallel()
	handler := decisionsOf(always(allowed(reportCreate(), 35, 250_000)))
	for contentType, want := range map[string]int{
		"application/json":                   200,
		"application/json; charset=utf-8":    200,
		"Application/JSON;charset=\"UTF-8\"": 200,
		"application/json; charset=latin1":   415,
		"application/json; profile=x":        415,
		"application/problem+json":           415,
		"text/json":                          415,
		"":                                   415,
	} {
		answer := call(handler, http.MethodPost, "/internal/rate-decisions", exampleRequest, "Content-Type", contentType)
		if answer.Code != want {
			t.Errorf("content type %q: status %d, want %d", contentType, answer.Code, want)
		}
	}
	if answer := post(handler, "/internal/rate-decisions", exampleRequest, "Content-Type", "application/json"); answer.Code != 415 {
		t.Errorf("two content types: status %d, want 415", answer.Code)
	}
	if answer := post(handler, "/internal/rate-decisions", exampleRequest, "Content-Encoding", "gzip"); answer.Code != 415 {
		t.Errorf("a compressed body: status %d, want 415", answer.Code)
	}
}

// TestOtherMethodsChargeNothing speaks over a real connection, where HEAD must
// not carry a body. No operation becomes known by them either.
func TestOtherMethodsChargeNothing(t *testing.T) {
	t.Parallel()
	operations := new(stubOperations)
	decider := &stubDecider{answer: func(_ context.Context, request *policy.Request) (policy.Decision, error) {
		decision := underOperation(request.OperationID, allowed(reportCreate(), 9, 50_000))
		operations.remember(request.Values[policy.Account], request.OperationID, decision)
		return decision, nil
	}}
	server := httptest.NewServer(httpapi.NewDecisions(httpapi.DecisionsConfig{Decider: decider, Operations: operations}))
	defer server.Close()
	defer server.Client().CloseIdleConnections()

	const path, outcome = "/internal/rate-decisions", "/internal/rate-decisions/op-1?verifiedAccount=A"
	send := func(method, target string) (*http.Response, string) {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+target, strings.NewReader(withOperationID("op-1")))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response, string(body)
	}
	for range 10 {
		for _, method := range []string{http.MethodOptions, http.MethodHead, http.MethodGet, http.MethodPut, http.MethodDelete, "BREW"} {
			response, body := send(method, path)
			if response.StatusCode != http.StatusMethodNotAllowed || response.Header.Get("Allow") != http.MethodPost {
				t.Errorf("%s: status %d, Allow %q, want 405 and POST", method, response.StatusCode, response.Header.Get("Allow"))
			}
			if method == http.MethodHead && body != "" {
				t.Errorf("HEAD has the body %q", body)
			}
		}
	}
	if decider.calls() != 0 {
		t.Fatalf("the decider was asked %d times before the POST", decider.calls())
	}
	if response, body := send(http.MethodGet, outcome); response.StatusCode != http.StatusNotFound {
		t.Errorf("the operation before the POST: status %d, want 404: %s", response.StatusCode, body)
	}
	if response, body := send(http.MethodPost, path); response.StatusCode != http.StatusOK {
		t.Errorf("POST: status %d, want 200: %s", response.StatusCode, body)
	}
	if response, body := send(http.MethodGet, outcome); response.StatusCode != http.StatusOK || !strings.Contains(body, `"source":"replay"`) {
		t.Errorf("the operation after the POST: status %d, want 200: %s", response.StatusCode, body)
	}
}

// TestEscapedPaths: an escaped path is the path it stands for, and an escaped
// slash is no slash.
func TestEscapedPaths(t *testing.T) {
	t.Parallel()
	decider := always(allowed(reportCreate(), 9, 50_000))
	for target, want := range map[string]int{
		"/internal/rate%2Ddecisions": http.StatusOK, "/internal/rate-decisions%2fbatch": http.StatusNotFound, "/internal/rate%2Ddecision": http.StatusNotFound,
	} {
		if answer := post(decisionsOf(decider), target, exampleRequest); answer.Code != want {
			t.Errorf("POST %s: status %d, want %d: %s", target, answer.Code, want, answer.Body)
		}
	}
	if answer := call(decisionsOf(decider), http.MethodGet, "/internal/rate%2Ddecisions", ""); answer.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: status %d, want 405: %s", answer.Code, answer.Body)
	}
	policies := adminOf(withVersions(t, 3))
	for target, want := range map[string]int{
		"/v1/policies/report%2Dcre%61te": http.StatusOK, "/v1/policies/report-create%2Fversions": http.StatusNotFound,
		"/v1/policies/report%2dcreate/versions/%32": http.StatusOK,
	} {
		if answer := call(policies, http.MethodGet, target, ""); answer.Code != want {
			t.Errorf("GET %s: status %d, want %d: %s", target, answer.Code, want, answer.Body)
		}
	}
}

// TestBodiesWithoutALengthAreBounded sends bodies whose length nobody states.
func TestBodiesWithoutALengthAreBounded(t *testing.T) {
	t.Parallel()
	for target, bytesMax := range map[string]int{"/internal/rate-decisions": 16 << 10, "/internal/rate-decisions/batch": 1 << 20} {
		for excess, want := range map[int]int{0: 400, 1: 413} { // spaces alone are no JSON
			decider := failing(errors.New("not to be asked"))
			endless := &countingReader{left: bytesMax + excess}
			request := httptest.NewRequest(http.MethodPost, target, endless)
			request.ContentLength = -1
			request.Header.Set("Content-Type", "application/json")
			recorder := httptest.NewRecorder()
			decisionsOf(decider).ServeHTTP(recorder, request)
			if recorder.Code != want {
				t.Errorf("%s with %d bytes: status %d, want %d", target, bytesMax+excess, recorder.Code, want)
			}
			if decider.calls() > 0 {
				t.Errorf("%s: the decider was asked", target)
			}
		}
	}
}

// countingReader gives a number of spaces.
type countingReader struct{ left int }

func (r *countingReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), r.left)
	for i := range n {
		p[i] = ' '
	}
	r.left -= n
	return n, nil
}

func TestBatchBounds(t *testing.T) {
	t.Parallel()
	const item = `{"verifiedAccount":"A","operation":"report.create"}`
	batch := func(n int) string {
		return `{"decisions":[` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + `]}`
	}
	for items, want := range map[int]int{0: 400, 1: 200, 1000: 200, 1001: 400} {
		decider := always(allowed(reportCreate(), 35, 250_000))
		answer := post(decisionsOf(decider), "/internal/rate-decisions/batch", batch(items))
		if answer.Code != want {
			t.Errorf("%d items: status %d, want %d", items, answer.Code, want)
		}
		if want != http.StatusOK && decider.calls() > 0 {
			t.Errorf("%d items: the decider was asked", items)
		}
	}
	answer := post(decisionsOf(always(allowed(reportCreate(), 35, 250_000))), "/internal/rate-decisions/batch", batch(1), "Idempotency-Key", "op-1")
	if answer.Code != http.StatusBadRequest {
		t.Errorf("a batch with Idempotency-Key: status %d, want 400", answer.Code)
	}
}
