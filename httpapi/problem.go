package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/rationhq/ration/policy"
)

const (
	detailInternal = "An unexpected fault of the service; it is logged under this request's id."

	// A body of 1 MiB can hold tens of thousands of faults; nobody reads more
	// than these, and the answer must not outgrow the question.
	faultsMax = 1000

	// What a caller is told to wait when we cannot decide. Just under a second,
	// so that jitter's rounding spreads callers over one and two seconds.
	unavailableWaitMicros = 950_000

	// What the repetition of an operation that is being decided is told to wait:
	// the first is done long before.
	inProgressWaitSeconds = 1
)

// problem is the JSON of an RFC 9457 problem. Members beyond the standard's
// are described beside the reasons that have them.
type problem struct {
	Type              string        `json:"type"`
	Title             string        `json:"title"`
	Status            int           `json:"status"`
	Detail            string        `json:"detail,omitempty"`
	Instance          string        `json:"instance,omitempty"` // the request's id
	Errors            []faultMember `json:"errors,omitempty"`
	CurrentVersion    int           `json:"currentVersion,omitempty"`    // version-conflict: what is in force, absent when nothing is
	RetryAfterSeconds int64         `json:"retryAfterSeconds,omitempty"` // 503, operation-in-progress and too-many-changes: as in Retry-After
}

// faultMember is one fault; its pointer is a JSON Pointer as URI fragment,
// "#/cost", "#" for the whole document.
type faultMember struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// versionConflictError is a version-conflict that knows the version in force.
type versionConflictError struct {
	cause   *policy.Error
	current int // 0 when the policy does not exist
}

func (c *versionConflictError) Error() string { return c.cause.Error() }
func (c *versionConflictError) Unwrap() error { return c.cause }

// writeProblem answers an error and gives the status it answered. It is the
// only place where errors become answers; causes go to the log, never out.
func (s *Site) writeProblem(w http.ResponseWriter, r *http.Request, err error) int {
	id := ensureRequestID(w, r)
	shown := s.problemOf(r.Context(), id, err)
	body, encodeErr := json.Marshal(shown)
	if encodeErr != nil {
		s.Logger.ErrorContext(r.Context(), "encode a problem", "requestId", id, "error", encodeErr)
	}
	body = append(body, '\n')
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	if shown.RetryAfterSeconds > 0 {
		header.Set("Retry-After", strconv.FormatInt(shown.RetryAfterSeconds, 10))
	}
	if shown.Status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Bearer realm="ration"`)
	}
	w.WriteHeader(shown.Status)
	s.write(r.Context(), w, body)
	return shown.Status
}

// problemOf describes an error to the caller, and to the log where it is ours.
func (s *Site) problemOf(ctx context.Context, requestID string, err error) *problem {
	known := asError(err)
	status, title := reasonInfo(known.Reason, known.Code)
	shown := &problem{
		Type: s.ProblemBase + string(known.Reason), Title: title, Status: status,
		Detail: known.Detail, Instance: requestID,
	}
	for i, fault := range known.Faults {
		if i == faultsMax {
			shown.Detail = fmt.Sprintf("%s The first %d of %d faults are listed.", known.Detail, faultsMax, len(known.Faults))
			break
		}
		shown.Errors = append(shown.Errors, faultMember{Pointer: fragment(fault.Pointer), Detail: fault.Detail})
	}
	if conflict, ok := errors.AsType[*versionConflictError](err); ok {
		shown.CurrentVersion = conflict.current
	}
	if tooFast, ok := errors.AsType[*tooFastError](err); ok {
		shown.RetryAfterSeconds = s.waitSeconds(tooFast.wait.Microseconds())
	}
	switch {
	case status == http.StatusServiceUnavailable:
		shown.RetryAfterSeconds = s.waitSeconds(unavailableWaitMicros)
		// The store and the queues log their own state; one line a request
		// would only bury it.
		s.Logger.DebugContext(ctx, "no decision", "requestId", requestID, "error", err)
	case known.Reason == policy.ReasonOperationInProgress:
		shown.RetryAfterSeconds = inProgressWaitSeconds
	case status == http.StatusInternalServerError:
		s.Logger.ErrorContext(ctx, "internal error", "requestId", requestID, "error", err)
	}
	return shown
}

// asError finds the domain's error in err. A context that ended means that no
// answer came in time; anything else unknown is a fault of ours.
func asError(err error) *policy.Error {
	if known, ok := errors.AsType[*policy.Error](err); ok {
		return known
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &policy.Error{
			Code: policy.CodeUnavailable, Reason: policy.ReasonStoreUnavailable,
			Detail: "No answer came within the deadline.", Cause: err,
		}
	}
	return &policy.Error{Code: policy.CodeInternal, Reason: policy.ReasonInternal, Detail: detailInternal, Cause: err}
}

// write sends a body. A caller that has gone is not our fault, so the failure
// is worth a line only to someone who looks for it.
func (s *Site) write(ctx context.Context, w http.ResponseWriter, body []byte) {
	if _, err := w.Write(body); err != nil {
		s.Logger.DebugContext(ctx, "write an answer", "error", err)
	}
}

// fragment writes a JSON Pointer as the fragment of a URI (RFC 6901, section 6).
func fragment(pointer string) string {
	return "#" + (&url.URL{Fragment: pointer}).EscapedFragment()
}

// badRequest is a 400 that names no member.
func badRequest(detail string) error {
	return policy.Invalid(policy.ReasonInvalidRequest, detail)
}

// conflict is a 409.
func conflict(reason policy.Reason, detail string) error {
	return &policy.Error{Code: policy.CodeConflict, Reason: reason, Detail: detail}
}

// notFound is a 404.
func notFound(detail string) error {
	return &policy.Error{Code: policy.CodeNotFound, Reason: policy.ReasonNotFound, Detail: detail}
}
