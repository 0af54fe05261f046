package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"time"

	"github.com/rationhq/ration/policy"
)

// outcome is an answer of any kind, as what two answers are compared by.
type outcome struct {
	Status   int
	Problem  string `json:",omitempty"` // the last part of a problem's type
	Decision *decisionReply
	Settled  *settledReply
	Usage    *usageReply
	Slot     *slotReply
}

// The members of the answers, of which none may be unknown.
type (
	decisionReply struct {
		Allowed           bool        `json:"allowed"`
		Remaining         int64       `json:"remaining"`
		RetryAfterSeconds *int64      `json:"retryAfterSeconds"`
		PolicyVersion     int         `json:"policyVersion"`
		RetryAfterMillis  *int64      `json:"retryAfterMillis"`
		Limit             int64       `json:"limit"`
		ResetAt           string      `json:"resetAt"`
		Policy            string      `json:"policy"`
		Outcome           string      `json:"outcome"`
		Source            string      `json:"source"`
		Mode              string      `json:"mode"`
		OperationID       string      `json:"operationId"`
		Slots             []slotReply `json:"slots"`
		Policies          []partReply `json:"policies"`
	}
	slotReply struct {
		SlotID    string `json:"slotId"`
		Policy    string `json:"policy"`
		ExpiresAt string `json:"expiresAt"`
	}
	partReply struct {
		Policy           string `json:"policy"`
		Version          int    `json:"version"`
		Limit            int64  `json:"limit"`
		Remaining        int64  `json:"remaining"`
		RetryAfterMillis *int64 `json:"retryAfterMillis"`
		Allowed          bool   `json:"allowed"`
		Mode             string `json:"mode"`
		ResetAt          string `json:"resetAt"` // in usage
	}
	usageReply struct {
		Policies []partReply    `json:"policies"`
		Missing  []missingReply `json:"missing"`
	}
	missingReply struct {
		Policy    string `json:"policy"`
		Attribute string `json:"attribute"`
	}
	settledReply struct {
		OperationID string             `json:"operationId"`
		SettledAt   string             `json:"settledAt"`
		Replayed    bool               `json:"replayed"`
		Clamped     bool               `json:"clamped"`
		Policies    []settledPartReply `json:"policies"`
	}
	settledPartReply struct {
		Policy  string `json:"policy"`
		Version int    `json:"version"`
		Charged int64  `json:"charged"`
		Actual  int64  `json:"actual"`
		Applied bool   `json:"applied"`
		Clamped bool   `json:"clamped"`
	}
)

// readOutcome reads an answer. member gives the place of the one kind of
// answer that a success may be.
func readOutcome(status int, header http.Header, body []byte, member func(*outcome) any) (outcome, error) {
	o := outcome{Status: status}
	if header.Get("Content-Type") == "application/problem+json" {
		var problem struct{ Type string }
		err := json.Unmarshal(body, &problem)
		o.Problem = path.Base(problem.Type)
		return o, err
	}
	if len(body) == 0 {
		return o, nil
	}
	return o, readStrictly(body, member(&o))
}

func readStrictly(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%w: %s", err, body)
	}
	return nil
}

// The places of the kinds of answer.
func decisionIn(o *outcome) any { o.Decision = new(decisionReply); return o.Decision }
func settledIn(o *outcome) any  { o.Settled = new(settledReply); return o.Settled }
func usageIn(o *outcome) any    { o.Usage = new(usageReply); return o.Usage }
func slotIn(o *outcome) any     { o.Slot = new(slotReply); return o.Slot }

// String writes an outcome so that equal ones read alike.
func (o outcome) String() string {
	text, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// millis and seconds round a wait up; nil is never.
func millis(micros int64) *int64 { return roundedUp(micros, time.Millisecond) }

func seconds(micros int64) *int64 { return roundedUp(micros, time.Second) }

func roundedUp(micros int64, unit time.Duration) *int64 {
	if micros == policy.Never {
		return nil
	}
	each := unit.Microseconds()
	whole := (micros + each - 1) / each
	return &whole
}

// foretold and exact write instants, the one rounded up to milliseconds.
func foretold(micros int64) string {
	return time.UnixMilli(*millis(micros)).UTC().Format("2006-01-02T15:04:05.000Z")
}

func exact(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.000000Z")
}
