package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// client asks one instance, as a gateway would.
type client struct {
	decisions string
	http      *http.Client
}

// answer is a decision as it arrives.
type answer struct {
	Status            int
	Header            http.Header
	Allowed           bool
	Remaining         int64
	RetryAfterSeconds *int64
	RetryAfterMillis  *int64
	PolicyVersion     int
	Type, Detail      string // of a problem
}

// call makes one call and gives status, header and body.
func (c *client) call(method, url, body string, header ...string) (int, http.Header, []byte, error) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, content, err
}

// ask asks for a decision. An error means that none arrived.
func (c *client) ask(body string) (answer, error) {
	status, header, content, err := c.call(http.MethodPost, c.decisions+"/internal/rate-decisions", body)
	if err != nil {
		return answer{}, err
	}
	a := answer{Status: status, Header: header}
	return a, json.Unmarshal(content, &a)
}

// mustAsk asks for a decision that has to arrive.
func (c *client) mustAsk(t *testing.T, body string) answer {
	t.Helper()
	a, err := c.ask(body)
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != http.StatusOK && a.Status != http.StatusTooManyRequests {
		t.Fatalf("%s: %d %s %s", body, a.Status, a.Type, a.Detail)
	}
	return a
}

// request is the body that asks for one call of an account.
func request(operation, account string) string {
	return fmt.Sprintf(`{"verifiedAccount":%q,"operation":%q}`, account, operation)
}

// slow is a policy by account whose buckets earn nothing while a test runs.
func slow(operation string, capacity int, more string) string {
	return fmt.Sprintf(`{"match":{"operations":[%q]},"per":["account"],%s
		"limit":{"algorithm":"token_bucket","capacity":%d,"refillTokens":1,"refillSeconds":86400}}`, operation, more, capacity)
}

// put installs a policy over HTTP; replaces 0 creates it.
func (i *instance) put(t *testing.T, id, body string, replaces int) {
	t.Helper()
	header, want := []string{"If-None-Match", "*"}, http.StatusCreated
	if replaces > 0 {
		header, want = []string{"If-Match", fmt.Sprintf(`"v%d"`, replaces)}, http.StatusOK
	}
	status, _, content, err := i.call(http.MethodPut, i.admin+"/v1/policies/"+id, body, header...)
	if err != nil || status != want {
		t.Fatalf("put %s: %d %s (%v)", id, status, content, err)
	}
}

// metric gives the value of a metric, "" when there is none.
func (i *instance) metric(t *testing.T, series string) string {
	t.Helper()
	_, _, content, err := i.call(http.MethodGet, i.metrics+"/metrics", "")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if value, found := strings.CutPrefix(line, series+" "); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
