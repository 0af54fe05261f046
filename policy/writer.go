package policy

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// writer writes JSON whose members are in the order they are given.
type writer struct {
	out   []byte
	comma bool // something stands before what is written next
}

// open begins an object or array that is a member, or with "" the document.
func (w *writer) open(name string, bracket byte) {
	if name != "" {
		w.name(name)
	}
	w.out = append(w.out, bracket)
	w.comma = false
}

// close ends what open began.
func (w *writer) close(bracket byte) {
	w.out = append(w.out, bracket)
	w.comma = true
}

// text writes a text member.
func (w *writer) text(name, value string) {
	w.name(name)
	w.quote(value)
}

// integer writes a number member.
func (w *writer) integer(name string, value int64) {
	w.name(name)
	w.out = strconv.AppendInt(w.out, value, 10)
}

// literal writes a member whose value is JSON already.
func (w *writer) literal(name, value string) {
	w.name(name)
	w.out = append(w.out, value...)
}

// element writes a text element of an array.
func (w *writer) element(value string) {
	w.separate()
	w.quote(value)
}

func (w *writer) name(name string) {
	w.separate()
	w.quote(name)
	w.out = append(w.out, ':')
}

func (w *writer) separate() {
	if w.comma {
		w.out = append(w.out, ',')
	}
	w.comma = true
}

// quote writes text; everything that a spec holds is valid UTF-8, which is
// all that jsontext could object to.
func (w *writer) quote(text string) {
	if out, err := jsontext.AppendQuote(w.out, text); err == nil {
		w.out = out
	}
}
