package httpapi_test

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/exchanges from what is answered now")

// exchange is one request and the handler that answers it. What was asked and
// answered, byte for byte, is kept in testdata/exchanges.
type exchange struct {
	name    string
	handler http.Handler
	method  string // default POST
	target  string // default /internal/rate-decisions
	body    string
	headers []string // name, value, …; default a JSON content type and a request id
}

// check compares the exchange with the one on file.
func (e exchange) check(t *testing.T) {
	t.Helper()
	if e.method == "" {
		e.method = http.MethodPost
	}
	if e.target == "" {
		e.target = "/internal/rate-decisions"
	}
	if e.headers == nil && e.body != "" {
		e.headers = []string{"Content-Type", "application/json"}
	}
	e.headers = append(slices.Clone(e.headers), "X-Request-Id", "example-1")

	answer := call(e.handler, e.method, e.target, e.body, e.headers...)
	got := e.render(answer)
	file := filepath.Join("testdata", "exchanges", e.name+".http")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test ./httpapi -update writes it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test ./httpapi -update accepts it)\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

// render writes request and answer as they look on the wire, headers sorted.
func (e exchange) render(answer *httptest.ResponseRecorder) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s %s HTTP/1.1\n", e.method, e.target)
	for i := 0; i < len(e.headers); i += 2 {
		fmt.Fprintf(&out, "%s: %s\n", e.headers[i], e.headers[i+1])
	}
	fmt.Fprintf(&out, "\n%s\n\n", e.body)

	fmt.Fprintf(&out, "HTTP/1.1 %d %s\n", answer.Code, http.StatusText(answer.Code))
	var lines []string
	for name, values := range answer.Header() {
		for _, value := range values {
			lines = append(lines, name+": "+value)
		}
	}
	slices.Sort(lines)
	fmt.Fprintf(&out, "%s\n\n%s", strings.Join(lines, "\n"), answer.Body)
	return out.Bytes()
}
