package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/rationhq/ration/policy"
)

// batchItemsMax bounds one batch: its answer of 400 KB is still one write.
const batchItemsMax = 1000

// decideBatch answers up to batchItemsMax requests in order, each with its own
// status; one bad item fails alone.
func (d *decisions) decideBatch(w http.ResponseWriter, r *http.Request, gateway *policy.Gateway) (int, error) {
	started := time.Now()
	scratch := d.scratches.take()
	defer d.scratches.giveBack(scratch)
	items, err := d.readBatch(r, scratch)
	if err != nil {
		return 0, err
	}

	requests := make([]*policy.Request, 0, len(items))
	for i := range items {
		item := &items[i]
		if item.Err == nil {
			item.Err = gateway.Check(item.Request)
		}
		if item.Err == nil {
			item.Request.Gateway = gateway.Name
			requests = append(requests, item.Request)
		}
	}
	results := make([]policy.Result, len(requests))
	if len(requests) > 0 {
		d.decider.DecideBatch(r.Context(), requests, results)
		d.Metrics.batches.Observe(time.Since(started).Seconds())
	}
	return d.writeBatch(w, r, scratch, items, results), nil
}

// readBatch reads the items of a batch; an item that is no request carries its
// own error.
func (d *decisions) readBatch(r *http.Request, scratch *scratch) ([]policy.Parsed, error) {
	if _, err := readQuery(r); err != nil {
		return nil, err
	}
	if len(r.Header[idempotencyKeyHeader]) > 0 {
		return nil, badRequest("Idempotency-Key names one decision; the items of a batch have their own operationId.")
	}
	body, err := readJSON(r, scratch.body, batchBytesMax)
	scratch.body = body
	if err != nil {
		return nil, err
	}
	return policy.ParseBatch(body, batchItemsMax)
}

// writeBatch answers the items in order; results are those of the items that
// were requests.
func (d *decisions) writeBatch(
	w http.ResponseWriter, r *http.Request, scratch *scratch, items []policy.Parsed, results []policy.Result,
) int {
	id := ensureRequestID(w, r)
	answer := append(scratch.answer, `{"decisions":[`...)
	for _, item := range items {
		answer = separate(answer)
		if item.Err != nil {
			answer = d.appendProblem(answer, r, id, item.Err)
			continue
		}
		result := &results[0]
		results = results[1:]
		if result.Err != nil {
			answer = d.appendProblem(answer, r, id, result.Err)
			continue
		}
		d.Metrics.observeVersion(item.Request, &result.Decision)
		answer = append(answer, `{"status":`...)
		answer = strconv.AppendInt(answer, int64(decisionStatus(&result.Decision)), 10)
		answer = append(answer, ',')
		answer = appendDecision(answer, &result.Decision, d.decisionWait(&result.Decision))
		answer = append(answer, '}')
	}
	answer = append(answer, "]}\n"...)
	scratch.answer = answer
	return d.writeJSON(w, r, answer)
}

// appendProblem appends a failed item: its status and its problem.
func (d *decisions) appendProblem(dst []byte, r *http.Request, requestID string, err error) []byte {
	shown := d.problemOf(r.Context(), requestID, err)
	encoded, _ := json.Marshal(shown) //nolint:errchkjson // text and numbers always encode
	dst = append(dst, `{"status":`...)
	dst = strconv.AppendInt(dst, int64(shown.Status), 10)
	dst = append(dst, `,"problem":`...)
	dst = append(dst, encoded...)
	return append(dst, '}')
}
