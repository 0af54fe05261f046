package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/rationhq/ration/policy"
)

// readinessTimeout bounds all checks together. Kubernetes gives a probe one
// second; an answer that says what hangs must come before that.
const readinessTimeout = 800 * time.Millisecond

// Check is one condition of readiness.
type Check struct {
	Name  string
	Probe func(ctx context.Context) error // nil when the condition holds

	// WarnOnly keeps the instance ready when the check fails: the store's,
	// because policies can answer without it, and a blip of the database must
	// not take every instance out of service at once.
	WarnOnly bool
}

// readiness answers whether this instance should be sent requests.
type readiness struct {
	*Site
	checks []Check
}

// answer is 200 when every check that is not WarnOnly passes, else 503;
// ?verbose lists the checks.
func (c *readiness) answer(w http.ResponseWriter, r *http.Request) (int, error) {
	query, err := readQuery(r, "verbose")
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), readinessTimeout)
	defer cancel()

	var list strings.Builder
	ready := true
	for _, check := range c.checks {
		err := check.Probe(ctx)
		switch {
		case err == nil:
			fmt.Fprintf(&list, "[+]%s ok\n", check.Name)
			continue
		case check.WarnOnly:
			fmt.Fprintf(&list, "[!]%s warning: %s\n", check.Name, explain(err))
		default:
			ready = false
			fmt.Fprintf(&list, "[-]%s failed: %s\n", check.Name, explain(err))
		}
		c.Logger.WarnContext(ctx, "a readiness check fails", "check", check.Name, "warnOnly", check.WarnOnly, "error", err)
	}

	status, verdict := http.StatusOK, "ready\n"
	if !ready {
		status, verdict = http.StatusServiceUnavailable, "not ready\n"
	}
	if query.Has("verbose") || !ready {
		verdict = list.String() + verdict
	}
	return c.writeText(w, r, status, verdict), nil
}

// explain gives the part of an error that may be shown; causes can hold
// addresses and are logged only.
func explain(err error) string {
	if known, ok := errors.AsType[*policy.Error](err); ok && known.Detail != "" {
		return known.Detail
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "No answer came in time."
	}
	return "See the log."
}
