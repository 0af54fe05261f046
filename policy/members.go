package policy

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

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

// readObject reads an object by the table of members that it may have.
func readObject[T any](r *reader, object jsontext.Value, into *T, table members[T]) seen {
	if object.Kind() != jsontext.KindBeginObject {
		r.faultForm("must be an object")
		return 0
	}
	var found seen
	var unknown map[string]bool // one fault tells of all that bear a name
	for rest := inside(object); ; {
		quoted, value, after, ok := cutMember(rest)
		if !ok {
			break
		}
		rest = after
		name := unquote(quoted)
		i := table.index(string(name))
		if i < 0 {
			if !unknown[string(name)] {
				r.faultFormAt(string(name), "is not a known member")
			}
			if unknown == nil {
				unknown = make(map[string]bool)
			}
			unknown[string(name)] = true
			continue
		}
		r.enter(table[i].name)
		switch {
		case found&(1<<i) != 0:
			r.faultForm("occurs more than once")
		case value.Kind() == jsontext.KindNull && table[i].required:
			r.faultForm("must not be null")
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
