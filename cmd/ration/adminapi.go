package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// adminTimeout bounds one call: a change waits for others, a few seconds, and where that is asked a minute for instances.
	adminTimeout = 75 * time.Second
	// answerBytesMax bounds one answer: a page of the largest policies there can be.
	answerBytesMax = 128 << 20

	pageRows = 1000        // of a list in one answer: as many as the service gives
	allRows  = math.MaxInt // of a list
)

// adminConfig says where the administration listener is, and who asks.
type adminConfig struct {
	URL         string `env:"RATION_ADMIN_URL"  envDefault:"http://127.0.0.1:8081"                                                help:"the administration listener"`
	Token       string `env:"RATION_TOKEN"      help:"an operator's token, where the listener wants one"`
	CA          string `env:"RATION_ADMIN_CA"   help:"file of the authorities of the listener's certificate, PEM (the machine's)"`
	Certificate string `env:"RATION_ADMIN_CERT" help:"file of an operator's client certificate, PEM, in place of a token"`
	Key         string `env:"RATION_ADMIN_KEY"  help:"file of its key"`
}

// adminAPI calls the administration listener of a service.
type adminAPI struct {
	base   string
	token  string // "" where none is sent
	client *http.Client
}

func (p *program) adminAPI() (*adminAPI, error) {
	var config adminConfig
	var found faults
	p.environment.read(&config, &found)
	found.checkURL("RATION_ADMIN_URL", config.URL)
	if strings.ContainsFunc(config.Token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		found.notef("RATION_TOKEN", "has a space or another character that is in no token")
	}
	secured := config.tls(&found)
	if err := found.err(); err != nil {
		return nil, err
	}
	return &adminAPI{
		base: strings.TrimSuffix(config.URL, "/"), token: config.Token,
		// A command makes a call or two; connections that outlive it help nobody.
		client: &http.Client{Timeout: adminTimeout, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: secured}},
	}, nil
}

// get gives the policy in force.
func (a *adminAPI) get(ctx context.Context, id string) (policyVersion, error) {
	body, _, err := a.call(ctx, http.MethodGet, policyPath(id), nil, nil)
	if err != nil {
		return policyVersion{}, err
	}
	return readPolicyVersion(body)
}

// put installs a version in place of another one, 0 when there must be none.
func (a *adminAPI) put(ctx context.Context, id string, replaces int, change []byte, query url.Values) (policyVersion, error) {
	body, _, err := a.call(ctx, http.MethodPut, withQuery(policyPath(id), query), replacing(replaces), change)
	if err != nil {
		return policyVersion{}, err
	}
	return readPolicyVersion(body)
}

// replacing is the precondition of a change: the version in force, 0 when there
// must be none.
func replacing(version int) http.Header {
	header := http.Header{}
	if version == 0 {
		header.Set("If-None-Match", "*")
	} else {
		header.Set("If-Match", `"v`+strconv.Itoa(version)+`"`)
	}
	return header
}

var nextLink = regexp.MustCompile(`<([^>]+)>; rel="next"`)

// list gives all policies in force, read and as they came.
func (a *adminAPI) list(ctx context.Context) ([]policyVersion, []json.RawMessage, error) {
	return collect[policyVersion](ctx, a, "/v1/policies", nil, "policies", allRows)
}

// collect gives what the member of each page lists, page after page and at most
// so many rows, read and as it came.
func collect[T any](
	ctx context.Context, a *adminAPI, path string, query url.Values, member string, rows int,
) (all []T, raw []json.RawMessage, err error) {
	asked := url.Values{"limit": {strconv.Itoa(min(rows, pageRows))}}
	maps.Copy(asked, query)
	for next := withQuery(path, asked); next != "" && len(all) < rows; {
		body, header, err := a.call(ctx, http.MethodGet, next, nil, nil)
		if err != nil {
			return nil, nil, err
		}
		var page map[string]json.RawMessage
		var read []T
		var came []json.RawMessage
		if err := errors.Join(json.Unmarshal(body, &page), json.Unmarshal(page[member], &read), json.Unmarshal(page[member], &came)); err != nil {
			return nil, nil, fmt.Errorf("read the service's answer: %w", err)
		}
		all, raw = append(all, read...), append(raw, came...)
		next = ""
		if link := nextLink.FindStringSubmatch(header.Get("Link")); link != nil {
			next = link[1]
		}
	}
	return all[:min(rows, len(all))], raw[:min(rows, len(raw))], nil
}

// read makes a call and reads the JSON that it answers.
func (a *adminAPI) read(ctx context.Context, method, path string, header http.Header, ask []byte, into any) (json.RawMessage, error) {
	body, _, err := a.call(ctx, method, path, header, ask)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return nil, fmt.Errorf("read the service's answer: %w", err)
	}
	return bytes.TrimSpace(body), nil
}

// withQuery gives a path with its parameters, if there are any.
func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

func policyPath(id string) string { return "/v1/policies/" + url.PathEscape(id) }

// call makes one call, and makes it again for as long as the service takes no
// more changes of this operator yet. An answer that is no success is a
// [*problem].
func (a *adminAPI) call(ctx context.Context, method, path string, header http.Header, body []byte) ([]byte, http.Header, error) {
	for {
		content, answered, err := a.callOnce(ctx, method, path, header, body)
		refused, ok := errors.AsType[*problem](err)
		if !ok || !refused.is("too-many-changes") {
			return content, answered, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, a.interrupted()
		case <-time.After(time.Duration(refused.RetryAfterSeconds) * time.Second):
		}
	}
}

func (a *adminAPI) callOnce(ctx context.Context, method, path string, header http.Header, body []byte) ([]byte, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, fmt.Errorf("ask %s: %w", a.base, err)
	}
	if header != nil {
		request.Header = header
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if a.token != "" {
		request.Header.Set("Authorization", "Bearer "+a.token)
	}
	answer, err := a.client.Do(request)
	if err != nil && ctx.Err() != nil {
		return nil, nil, a.interrupted()
	}
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // the address is told already
		}
		return nil, nil, fmt.Errorf("no answer from %s (RATION_ADMIN_URL): %w; does a service run there?", a.base, err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	content, err := io.ReadAll(io.LimitReader(answer.Body, answerBytesMax))
	if err != nil {
		return nil, nil, fmt.Errorf("read the answer of %s: %w", a.base, err)
	}
	if answer.StatusCode/100 != 2 {
		return nil, nil, readProblem(answer, content)
	}
	return content, answer.Header, nil
}

// interrupted is the error of a call that nobody waits for any more. The service
// may do what it was asked all the same.
func (a *adminAPI) interrupted() error { return fmt.Errorf("interrupted before %s answered", a.base) }
