package policy

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// pathDepthMax is the depth of the deepest member, /clients/{n}/gateway/accounts/{n}:
// tables of members do not recurse.
const pathDepthMax = 5

// reader reads one JSON document strictly and collects every fault it finds.
// A fault of form (syntax, type, an unknown, duplicate, missing or null
// member) makes the document malformed; any other leaves it well-formed but
// impossible.
type reader struct {
	path      [pathDepthMax]string // tokens of the JSON Pointer of what is being read
	depth     int                  // how many they are
	faults    []Fault
	malformed bool
}

// document checks that body is one JSON object, in valid UTF-8 and with
// nothing behind it, and gives that object. Only then may it be read on.
func (r *reader) document(body []byte) (object jsontext.Value, ok bool) {
	// Duplicates are looked for by readObject, which names every one of them.
	duplicates := jsontext.AllowDuplicateNames(true)
	value := jsontext.Value(body)
	switch {
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		r.faultForm("must not begin with a byte-order mark")
	case !value.IsValid(duplicates):
		r.syntax(body, duplicates)
	case value.Kind() != jsontext.KindBeginObject:
		r.faultForm("must be a JSON object")
	default:
		return value[bytes.IndexByte(value, '{'):], true
	}
	return nil, false
}

// syntax notes why body is not one valid JSON value.
func (r *reader) syntax(body []byte, options jsontext.Options) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(body), options)
	_, err := decoder.ReadValue()
	syntax, isSyntax := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, io.EOF):
		r.faultForm("is empty; it must be a JSON object")
	case err == nil:
		r.faultForm("has something behind the JSON object, from byte " + strconv.FormatInt(decoder.InputOffset(), 10) + " on")
	case isSyntax:
		pointer := r.pointer() + string(syntax.JSONPointer)
		detail := "is not valid JSON at byte " + strconv.FormatInt(syntax.ByteOffset, 10) + ": " + syntax.Err.Error()
		r.malformed = true
		r.faults = append(r.faults, Fault{Pointer: pointer, Detail: detail})
	default:
		r.faultForm("is not valid JSON")
	}
}

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
	detail := "One fault was found."
	if len(r.faults) > 1 {
		detail = strconv.Itoa(len(r.faults)) + " faults were found."
	}
	return Invalid(reason, detail, r.faults...)
}
