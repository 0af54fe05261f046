package policy

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// pathDepthMax is the depth of the deepest member, /costs/operations/{name}:
// tables of members do not recurse.
const pathDepthMax = 3

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

// member is one member that an object may have.
type member[T any] struct {
	name     string
	required bool
	read     func(r *reader, into *T, value jsontext.Value) // value is the body's memory: copy what is kept
}

// members is the table of an object's members, at most 64.
type members[T any] []member[T]

// seen has bit i set when an object has the i-th member of its table.
type seen uint64

// has says whether an object has the named member.
func (m members[T]) has(s seen, name string) bool {
	i := m.index(name)
	return i >= 0 && s&(1<<i) != 0
}

// index finds a member; names are compared byte by byte, so that no two
// readers of {"cost":100,"Cost":1} can differ. -1: there is none.
func (m members[T]) index(name string) int {
	for i := range m {
		if m[i].name == name {
			return i
		}
	}
	return -1
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

// readObject reads an object by the table of members that it may have.
func readObject[T any](r *reader, object jsontext.Value, into *T, table members[T]) seen {
	if object.Kind() != jsontext.KindBeginObject {
		r.faultForm("must be an object")
		return 0
	}
	var found seen
	for rest := inside(object); ; {
		quoted, value, after, ok := cutMember(rest)
		if !ok {
			break
		}
		rest = after
		name := unquote(quoted)
		i := table.index(string(name))
		if i < 0 {
			r.enter(string(name))
			r.faultForm("is not a known member")
			r.leave()
			continue
		}
		r.enter(table[i].name)
		switch {
		case found&(1<<i) != 0:
			r.faultForm("occurs more than once")
		case value.Kind() == jsontext.KindNull:
			r.faultForm("must not be null; leave it out instead")
		default:
			table[i].read(r, into, value)
		}
		r.leave()
		found |= 1 << i
	}
	for i := range table {
		if table[i].required && found&(1<<i) == 0 {
			r.faultFormAt(table[i].name, "is required")
		}
	}
	return found
}

// each reads an array element by element.
func (r *reader) each(array jsontext.Value, countMax int, read func(element jsontext.Value)) {
	if array.Kind() != jsontext.KindBeginArray {
		r.faultForm("must be a list")
		return
	}
	for rest, i := inside(array), 0; ; i++ {
		element, after, ok := cutElement(rest)
		if !ok {
			return
		}
		if i == countMax {
			r.fault("must have at most " + strconv.Itoa(countMax) + " entries")
			return
		}
		r.enter(strconv.Itoa(i))
		read(element)
		r.leave()
		rest = after
	}
}

// eachEntry reads an object whose member names are data.
func (r *reader) eachEntry(object jsontext.Value, countMax int, read func(name string, value jsontext.Value)) {
	if object.Kind() != jsontext.KindBeginObject {
		r.faultForm("must be an object")
		return
	}
	names := make(map[string]bool)
	for rest := inside(object); ; {
		quoted, value, after, ok := cutMember(rest)
		if !ok {
			return
		}
		name := string(unquote(quoted))
		if len(names) == countMax && !names[name] {
			r.fault("must have at most " + strconv.Itoa(countMax) + " members")
			return
		}
		r.enter(name)
		if names[name] {
			r.faultForm("occurs more than once")
		} else {
			read(name, value)
		}
		r.leave()
		names[name] = true
		rest = after
	}
}

// text reads text of bytesMin to bytesMax bytes without NUL, which PostgreSQL
// cannot store.
func (r *reader) text(value jsontext.Value, bytesMin, bytesMax int) string {
	if value.Kind() != jsontext.KindString {
		r.faultForm("must be text")
		return ""
	}
	raw := unquote(value)
	switch {
	case len(raw) < bytesMin || len(raw) > bytesMax:
		r.fault("must be " + strconv.Itoa(bytesMin) + " to " + strconv.Itoa(bytesMax) + " bytes of UTF-8, not " + strconv.Itoa(len(raw)))
		return ""
	case bytes.IndexByte(raw, 0) >= 0:
		r.fault("must not contain the character NUL")
		return ""
	}
	return string(raw)
}

// positive reads a whole number from 1 to most, written as one. A fault is
// noted and answered by 0.
func (r *reader) positive(value jsontext.Value, most int64) int64 {
	if !r.isNumber(value) {
		return 0
	}
	text := string(value)
	switch {
	case strings.ContainsAny(text, "eE"):
		r.fault("must be written as a plain integer, without an exponent")
		return 0
	case strings.Contains(text, "."):
		r.fault("must be a whole number, written without a fraction")
		return 0
	}
	number, err := strconv.ParseInt(text, 10, 64)
	switch {
	case number < 1: // ParseInt saturates where it fails
		r.fault("must be at least 1")
	case number > most || err != nil:
		r.fault("must be at most " + strconv.FormatInt(most, 10))
	default:
		return number
	}
	return 0
}

// isNumber notes a fault when value is not a number.
func (r *reader) isNumber(value jsontext.Value) bool {
	switch value.Kind() {
	case jsontext.KindNumber:
		return true
	case jsontext.KindString:
		r.faultForm("must be a number, not text")
	default:
		r.faultForm("must be a number")
	}
	return false
}

// boolean reads true or false.
func (r *reader) boolean(value jsontext.Value) bool {
	switch value.Kind() {
	case jsontext.KindTrue:
		return true
	case jsontext.KindFalse:
	default:
		r.faultForm("must be true or false")
	}
	return false
}
