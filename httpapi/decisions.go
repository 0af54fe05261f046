package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/rationhq/ration/policy"
)

// DecisionsConfig is what the decision listener needs.
type DecisionsConfig struct {
	Site
	Decider     Decider
	Operations  Operations
	Gateways    Authenticator // nil: whoever reaches the listener may ask anything
	ResetHeader ResetHeader   // default: seconds from now
}

// decisions serves gateways.
type decisions struct {
	*Site
	decider     Decider
	operations  Operations
	gateways    Authenticator
	anyGateway  policy.Gateway // whoever reaches the listener where it is open
	resetHeader ResetHeader
	scratches   scratches
}

// NewDecisions makes the handler of the decision listener: decisions one at a
// time and in batches, what became of one, its settlement, slots and usage.
func NewDecisions(config DecisionsConfig) http.Handler {
	d := &decisions{
		Site: config.withDefaults(), decider: config.Decider, operations: config.Operations, gateways: config.Gateways,
		resetHeader: config.ResetHeader,
	}
	router := d.router()
	d.route(router, http.MethodPost, "/internal/rate-decisions", d.decide)
	d.route(router, http.MethodPost, "/internal/rate-decisions/batch", d.decideBatch)
	d.routeGet(router, "/internal/rate-decisions/{operationId}", d.getDecision)
	d.route(router, http.MethodPost, "/internal/rate-decisions/{operationId}/settlement", d.settle)
	d.route(router, http.MethodDelete, "/internal/slots/{slotId}", d.releaseSlot)
	d.route(router, http.MethodPost, "/internal/slots/{slotId}/renewal", d.renewSlot)
	d.routeGet(router, "/internal/usage", d.getUsage)
	return router
}

// decide answers one request: 200 or 429.
func (d *decisions) decide(w http.ResponseWriter, r *http.Request, gateway *policy.Gateway) (int, error) {
	started := time.Now()
	scratch := d.scratches.take()
	defer d.scratches.giveBack(scratch)
	request, err := d.readRequest(r, gateway, scratch)
	if err != nil {
		return 0, err
	}

	decision, err := d.decider.Decide(r.Context(), request)
	d.Metrics.observeDecision(time.Since(started), decision.Source, err)
	if err != nil {
		return 0, err
	}
	d.Metrics.observeVersion(request, &decision)
	return d.writeDecision(w, r, scratch, &decision), nil
}

// readRequest reads one request, its operation id from where it is given, and
// refuses what would be ignored, or is not the gateway's to ask.
func (d *decisions) readRequest(r *http.Request, gateway *policy.Gateway, scratch *scratch) (*policy.Request, error) {
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
	if err := addIdempotencyKey(r, request); err != nil {
		return nil, err
	}
	request.Gateway = gateway.Name
	return request, gateway.Check(request)
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

// writeJSON answers 200 with a whole JSON body that holds at this instant only.
func (d *decisions) writeJSON(w http.ResponseWriter, r *http.Request, body []byte) int {
	ensureRequestID(w, r)
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	d.write(r.Context(), w, body)
	return http.StatusOK
}

func decisionStatus(decision *policy.Decision) int {
	if decision.Allowed {
		return http.StatusOK
	}
	return http.StatusTooManyRequests
}
