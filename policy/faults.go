package policy

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// enter goes one step deeper; faults point there until leave.
func (r *reader) enter(token string) {
	r.path[r.depth] = token
	r.depth++
}

// leave goes back up.
func (r *reader) leave() { r.depth-- }

// pointer is the JSON Pointer (RFC 6901) of what is being read.
func (r *reader) pointer() string {
	var pointer jsontext.Pointer
	for _, token := range r.path[:r.depth] {
		pointer = pointer.AppendToken(token)
	}
	return string(pointer)
}

// fault notes that what is being read is well-formed but impossible.
func (r *reader) fault(detail string) {
	r.faults = append(r.faults, Fault{Pointer: r.pointer(), Detail: detail})
}

// faultAt notes the same of a member of what is being read.
func (r *reader) faultAt(name, detail string) {
	r.enter(name)
	r.fault(detail)
	r.leave()
}

// faultForm notes that what is being read has the wrong form.
func (r *reader) faultForm(detail string) {
	r.malformed = true
	r.fault(detail)
}

// faultFormAt notes the same of a member of what is being read.
func (r *reader) faultFormAt(name, detail string) {
	r.malformed = true
	r.faultAt(name, detail)
}

// err is the error of everything read: nil without a fault, invalid-request
// when the form is wrong, else of the reason given.
func (r *reader) err(impossible Reason) error {
	if len(r.faults) == 0 {
		return nil
	}
	reason := impossible
	if r.malformed {
		reason = ReasonInvalidRequest
	}
	detail := "one fault was found"
	if len(r.faults) > 1 {
		detail = strconv.Itoa(len(r.faults)) + " faults were found"
	}
	return Invalid(reason, detail, r.faults...)
}
