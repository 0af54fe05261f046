package policy

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Parsed is one item of a batch of requests: the request, or why it is none.
type Parsed struct {
	Request *Request
	Err     error
}

// envelope is the body of a batch.
type envelope struct{ decisions jsontext.Value }

var envelopeMembers = members[envelope]{
	{name: "decisions", required: true, read: func(r *reader, e *envelope, v jsontext.Value) {
		if e.decisions = v; v.Kind() != jsontext.KindBeginArray {
			r.faultForm("must be a list")
		}
	}},
}

// ParseBatch reads {"decisions":[…]} with 1 to itemsMax requests. A faulty
// item fails alone, with pointers relative to the item; a faulty envelope, and
// JSON that cannot be read on, fails the batch with an [*Error] of reason
// invalid-request.
func ParseBatch(body []byte, itemsMax int) ([]Parsed, error) {
	var r reader
	object, ok := r.document(body)
	if !ok {
		return nil, r.err(ReasonInvalidRequest)
	}
	var batch envelope
	readObject(&r, object, &batch, envelopeMembers)
	if len(r.faults) > 0 {
		return nil, r.err(ReasonInvalidRequest)
	}
	var items []jsontext.Value
	for rest := inside(batch.decisions); ; {
		item, after, ok := cutElement(rest)
		if !ok {
			break
		}
		if len(items) == itemsMax {
			r.faultAt("decisions", "must have at most "+strconv.Itoa(itemsMax)+" items")
			return nil, r.err(ReasonInvalidRequest)
		}
		items = append(items, item)
		rest = after
	}
	if len(items) == 0 {
		r.faultAt("decisions", "must have at least one item")
		return nil, r.err(ReasonInvalidRequest)
	}
	parsed := make([]Parsed, len(items))
	requests := make([]Request, len(items)) // at once: they live and die together
	for i, item := range items {
		r = reader{}
		if err := r.request(item, &requests[i]); err != nil {
			parsed[i].Err = err
		} else {
			parsed[i].Request = &requests[i]
		}
	}
	return parsed, nil
}
