package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// adminTimeout bounds one call: a put waits for other changes, a few seconds at most.
	adminTimeout = 15 * time.Second
	// answerBytesMax bounds one answer: a page of the largest policies there can be.
	answerBytesMax = 128 << 20
)

// adminConfig says where the administration listener is.
type adminConfig struct {
	URL string `env:"RATION_ADMIN_URL" envDefault:"http://127.0.0.1:8081" help:"the administration listener"`
}

// adminAPI calls the administration listener of a service.
type adminAPI struct {
	base   string
	client *http.Client
}

func (p *program) adminAPI() (*adminAPI, error) {
	var config adminConfig
	var found faults
	p.environment.read(&config, &found)
	found.checkURL("RATION_ADMIN_URL", config.URL)
	if err := found.err(); err != nil {
		return nil, err
	}
	return &adminAPI{
		base: strings.TrimSuffix(config.URL, "/"),
		// A command makes a call or two; connections that outlive it help nobody.
		client: &http.Client{Timeout: adminTimeout, Transport: &http.Transport{DisableKeepAlives: true}},
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
func (a *adminAPI) put(ctx context.Context, id string, replaces int, change []byte) (policyVersion, error) {
	header := http.Header{"Content-Type": {"application/json"}}
	if replaces == 0 {
		header.Set("If-None-Match", "*")
	} else {
		header.Set("If-Match", `"v`+strconv.Itoa(replaces)+`"`)
	}
	body, _, err := a.call(ctx, http.MethodPut, policyPath(id), header, change)
	if err != nil {
		return policyVersion{}, err
	}
	return readPolicyVersion(body)
}

var nextLink = regexp.MustCompile(`<([^>]+)>; rel="next"`)

// list gives all policies in force, page after page.
func (a *adminAPI) list(ctx context.Context) ([]policyVersion, error) {
	var all []policyVersion
	for path := "/v1/policies?limit=1000"; path != ""; {
		body, header, err := a.call(ctx, http.MethodGet, path, nil, nil)
		if err != nil {
			return nil, err
		}
		var page struct {
			Policies []json.RawMessage `json:"policies"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return nil, fmt.Errorf("read the service's answer: %w", err)
		}
		for _, raw := range page.Policies {
			version, err := readPolicyVersion(raw)
			if err != nil {
				return nil, err
			}
			all = append(all, version)
		}
		path = ""
		if next := nextLink.FindStringSubmatch(header.Get("Link")); next != nil && len(page.Policies) > 0 {
			path = next[1]
		}
	}
	return all, nil
}

func policyPath(id string) string { return "/v1/policies/" + url.PathEscape(id) }

// call makes one call. An answer that is no success is a [*problem].
func (a *adminAPI) call(ctx context.Context, method, path string, header http.Header, body []byte) ([]byte, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, fmt.Errorf("ask %s: %w", a.base, err)
	}
	if header != nil {
		request.Header = header
	}
	answer, err := a.client.Do(request)
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
