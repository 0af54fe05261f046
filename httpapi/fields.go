package httpapi

import "net/http"

// fieldsMax is the largest number of header fields that a decision adds.
const fieldsMax = 8

// fields collects header fields in one buffer. Their text becomes one string
// and their values one slice, so that a decision's headers cost two
// allocations instead of two for each field.
type fields struct {
	text  []byte
	names [fieldsMax]string
	ends  [fieldsMax]int // where each field's value ends in text
	count int
}

// reset forgets the fields and keeps the buffer.
func (f *fields) reset() { f.text, f.count = f.text[:0], 0 }

// end closes the value just appended to text under a canonical name.
func (f *fields) end(name string) {
	f.names[f.count], f.ends[f.count] = name, len(f.text)
	f.count++
}

// add appends a whole field.
func (f *fields) add(name, value string) {
	f.text = append(f.text, value...)
	f.end(name)
}

// writeTo sets the fields in a response's header.
func (f *fields) writeTo(header http.Header) {
	text := string(f.text)
	values := make([]string, f.count)
	start := 0
	for i := range f.count {
		values[i] = text[start:f.ends[i]]
		header[f.names[i]] = values[i : i+1 : i+1]
		start = f.ends[i]
	}
}
