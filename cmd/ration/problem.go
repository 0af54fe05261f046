package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
)

// problem is a refusal of the service (RFC 9457), told to a person.
type problem struct {
	Type           string  `json:"type"`
	Title          string  `json:"title"`
	Detail         string  `json:"detail"`
	Instance       string  `json:"instance"`
	Errors         []fault `json:"errors"`
	CurrentVersion int     `json:"currentVersion"`

	RetryAfterSeconds int `json:"retryAfterSeconds"`

	status string
}

// readProblem reads a refusal; one that is no problem document, as a proxy's,
// keeps its status at least.
func readProblem(answer *http.Response, body []byte) error {
	p := &problem{status: answer.Status}
	if json.Unmarshal(body, p) != nil || p.Type == "" {
		return &problem{status: answer.Status, Type: "answer", Title: "is not of a Ration service"}
	}
	return p
}

// Error gives the kind of problem, what it says, and every fault on a line of
// its own.
func (p *problem) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s (%s): %s", path.Base(p.Type), p.status, cmp.Or(p.Detail, p.Title))
	if p.CurrentVersion > 0 {
		fmt.Fprintf(&text, "\n  in force is v%d", p.CurrentVersion)
	}
	for _, fault := range p.Errors {
		fmt.Fprintf(&text, "\n  %s", fault)
	}
	if p.is("unauthenticated") {
		text.WriteString("\n  set RATION_TOKEN to an operator's token (ration token create)")
	}
	if strings.HasPrefix(p.status, "5") && p.Instance != "" {
		fmt.Fprintf(&text, "\n  the service's log has it under %s", p.Instance)
	}
	return text.String()
}

// is says whether the problem is of a kind.
func (p *problem) is(kind string) bool { return path.Base(p.Type) == kind }
