// Package trace reads past traffic: CSV files and the access logs of web
// servers, line by line and in bounded memory, however long they are. A line
// that is no request is counted and told of, and ends nothing.
package trace

import (
	"errors"
	"fmt"
	"io"

	"github.com/rationhq/ration/policy"
)

// faultsShownMax is how many bad lines are told of by number and reason.
const faultsShownMax = 5

// Record is one request of past traffic.
type Record struct {
	AtMicros int64          // when it was made, since 1970
	Request  policy.Request // canonical, with an operation and who it is from
}

// Fault is a line that is no request.
type Fault struct {
	Line   int // from 1
	Reason string
}

// Faults are the lines that are no requests.
type Faults struct {
	Count int
	First []Fault // at most 5
}

// layout reads the lines of one kind of file.
type layout interface {
	// read reads one line into an empty record. An error says why it is no
	// request.
	read(line string, into *Record) error
}

// Reader reads a trace record by record.
type Reader struct {
	Faults Faults // so far

	lines    *lines
	layout   layout
	defaults Defaults
	record   Record
}

// Lines gives how many lines were read so far.
func (r *Reader) Lines() int { return r.lines.number }

// Next gives the next request; [io.EOF] behind the last. What it gives is
// valid until the next call. Any other error ends the trace.
func (r *Reader) Next() (*Record, error) {
	for {
		line, err := r.lines.next()
		if err != nil && !errors.Is(err, errLong) {
			return nil, err
		}
		r.record = Record{}
		if err == nil {
			err = r.layout.read(line, &r.record)
		}
		if err == nil {
			err = r.complete(&r.record.Request)
		}
		if err == nil {
			return &r.record, nil
		}
		r.Faults.note(r.lines.number, err)
	}
}

// complete gives a request what the trace says of all and checks that it is
// one.
func (r *Reader) complete(request *policy.Request) error {
	identified := false
	for attribute := range policy.Attribute(policy.AttributeCount) {
		if request.Values[attribute] == "" {
			request.Values[attribute] = r.defaults[attribute]
		}
		identified = identified || attribute <= policy.TargetAccount && request.Values[attribute] != ""
	}
	switch {
	case request.Values[policy.Operation] == "":
		return errors.New("has no operation")
	case !identified:
		return errors.New("says nothing of who the request is from")
	}
	return nil
}

func (f *Faults) note(line int, reason error) {
	f.Count++
	if len(f.First) < faultsShownMax {
		f.First = append(f.First, Fault{Line: line, Reason: reason.Error()})
	}
}

// Defaults are the values of attributes that a line does not have itself.
type Defaults [policy.AttributeCount]string

// Set gives one attribute, by its name in policies or requests, a default.
func (d *Defaults) Set(name, text string) error {
	attribute, known := attributeOf(name)
	if !known {
		return fmt.Errorf("%q is no attribute of a request", name)
	}
	value, err := policy.CanonicalValue(attribute, text)
	if err != nil {
		return fmt.Errorf("%s %q %w", name, text, err)
	}
	d[attribute] = value
	return nil
}

// attributeOf finds an attribute by its name in policies or in requests.
func attributeOf(name string) (policy.Attribute, bool) {
	if name == policy.Account.RequestMember() {
		return policy.Account, true
	}
	return policy.ParseAttribute(name)
}

// open makes a reader of a text's lines; its layout is for the caller to give.
func open(input io.Reader, defaults Defaults) (*Reader, error) {
	lines, err := newLines(input)
	if err != nil {
		return nil, err
	}
	return &Reader{lines: lines, defaults: defaults}, nil
}
