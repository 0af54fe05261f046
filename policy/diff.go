package policy

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Difference is one member in which two stored forms differ.
type Difference struct {
	Pointer       string         // JSON Pointer (RFC 6901)
	Before, After jsontext.Value // nil where there is no such member
}

// Diff gives every member in which the stored form of after differs from that
// of before, nil for a policy that is not there yet. Lists are compared whole.
func Diff(before, after *Spec) []Difference {
	form := jsontext.Value("{}")
	if before != nil {
		form = before.JSON()
	}
	return appendDiff(nil, "", form, after.JSON())
}

// appendDiff appends in which members two objects differ: those of the first in
// their order, then those that only the second has.
func appendDiff(to []Difference, at jsontext.Pointer, before, after jsontext.Value) []Difference {
	for rest := inside(before); ; {
		name, was, next, ok := cutMember(rest)
		if !ok {
			break
		}
		rest = next
		pointer, is := at.AppendToken(string(unquote(name))), memberOf(after, name)
		switch {
		case bytes.Equal(was, is):
		case was.Kind() == jsontext.KindBeginObject && is.Kind() == jsontext.KindBeginObject:
			to = appendDiff(to, pointer, was, is)
		default:
			to = append(to, Difference{Pointer: string(pointer), Before: was, After: is})
		}
	}
	for rest := inside(after); ; {
		name, is, next, ok := cutMember(rest)
		if !ok {
			return to
		}
		rest = next
		if memberOf(before, name) == nil {
			to = append(to, Difference{Pointer: string(at.AppendToken(string(unquote(name)))), After: is})
		}
	}
}

// memberOf gives the value of an object's member, nil when it has none of the
// name, which is written as in the object.
func memberOf(object, name jsontext.Value) jsontext.Value {
	for rest := inside(object); ; {
		found, value, next, ok := cutMember(rest)
		if !ok {
			return nil
		}
		if bytes.Equal(found, name) {
			return value
		}
		rest = next
	}
}
