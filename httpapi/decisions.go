package httpapi

import (
	"net/http"
	"time"

	"github.com/rationhq/ration/policy"
)

// DecisionsConfig is what the decision listener needs.
type DecisionsConfig struct {
	Site
	Decider     Decider
	ResetHeader ResetHeader // default: seconds from now
}

// decisions serves gateways.
type decisions struct {
	*Site
	decider     Decider
	resetHeader ResetHeader
	scratches   scratches
}

// NewDecisions makes the handler of the decision listener:
// POST /internal/rate-decisions and POST /internal/rate-decisions/batch.
func NewDecisions(config DecisionsConfig) http.Handler {
	d := &decisions{Site: config.withDefaults(), decider: config.Decider, resetHeader: config.ResetHeader}
	router := d.router()
	d.route(router, http.MethodPost, "/internal/rate-decisions", d.decide)
	d.route(router, http.MethodPost, "/internal/rate-decisions/batch", d.decideBatch)
	return router
}

// decide answers one request: 200 or 429.
func (d *decisions) decide(w http.ResponseWriter, r *http.Request) (int, error) {
	started := time.Now()
	scratch := d.scratches.take()
	defer d.scratches.giveBack(scratch)
	request, err := d.readRequest(r, scratch)
	if err != nil {
		return 0, err
	}

	decision, err := d.decider.Decide(r.Context(), request)
	d.Metrics.observeDecision(time.Since(started), decision.Source, err)
	if err != nil {
		return 0, err
	}
	d.Metrics.observeVersion(request, decision.Policy)
	return d.writeDecision(w, r, scratch, &decision), nil
}

// readRequest reads one request and refuses what would be ignored.
func (d *decisions) readRequest(r *http.Request, scratch *scratch) (*policy.Request, error) {
	if _, err := readQuery(r); err != nil {
		return nil, err
	}
	body, err := readJSON(r, scratch.body, decisionBytesMax)
	scratch.body = body
	if err != nil {
		return nil, err
	}
	request, err := policy.ParseRequest(body)
	if err != nil {
		return nil, err
	}
	if request.OperationID != "" || len(r.Header["Idempotency-Key"]) > 0 {
		return nil, operationIDNotYet()
	}
	return request, nil
}

// operationIDNotYet refuses operation ids: a caller that gives one will retry,
// and a retry that is not replayed would charge twice.
func operationIDNotYet() error {
	return notYet("Operation ids (operationId, Idempotency-Key) are not replayed yet; a repeat would be charged again.")
}

// writeDecision answers a decision and gives its status.
func (d *decisions) writeDecision(w http.ResponseWriter, r *http.Request, scratch *scratch, decision *policy.Decision) int {
	waitSeconds := d.decisionWait(decision)
	scratch.fields.addDecisionFields(decision, d.resetHeader, waitSeconds)
	scratch.fields.writeTo(w.Header())
	if requestID(r) != "" {
		w.Header()[requestIDHeader] = r.Header[requestIDHeader]
	}
	answer := append(scratch.answer, '{')
	answer = appendDecision(answer, decision, waitSeconds)
	answer = append(answer, "}\n"...)
	scratch.answer = answer

	status := decisionStatus(decision)
	w.WriteHeader(status)
	d.write(r.Context(), w, answer)
	return status
}

func decisionStatus(decision *policy.Decision) int {
	if decision.Allowed {
		return http.StatusOK
	}
	return http.StatusTooManyRequests
}
