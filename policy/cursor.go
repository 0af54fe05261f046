package policy

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// The functions of this file walk JSON that jsontext has found valid (see
// [reader.document]), so they have no error to report and need no state: on
// the way of every decision that is five times faster than decoding token by
// token, and no less strict.

// inside gives what stands between an object's or an array's brackets, with
// the closing one.
func inside(container jsontext.Value) []byte { return container[1:] }

// cutMember cuts the first member off the inside of an object. At the
// object's end ok is false.
func cutMember(rest []byte) (name, value jsontext.Value, after []byte, ok bool) {
	name, rest, ok = cutElement(rest)
	if !ok {
		return nil, nil, nil, false
	}
	value, after, ok = cutElement(rest)
	return name, value, after, ok
}

// cutElement cuts the first value off the inside of an array. At the array's
// end ok is false.
func cutElement(rest []byte) (value jsontext.Value, after []byte, ok bool) {
	start := 0
	for isBetween(rest[start]) {
		start++
	}
	if rest[start] == ']' || rest[start] == '}' {
		return nil, nil, false
	}
	rest = rest[start:]
	end := valueLength(rest)
	return rest[:end], rest[end:], true
}

// isBetween says whether c is white space or a separator.
func isBetween(c byte) bool {
	switch c {
	case ' ', '\t', '\n', '\r', ',', ':':
		return true
	}
	return false
}

// valueLength gives the length of the value that text begins with.
func valueLength(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			i += stringLength(text[i:]) - 1
			if depth == 0 {
				return i + 1
			}
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth == 0 {
				return i // a number or literal, the last of its container
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case depth == 0 && isBetween(c):
			return i
		}
	}
	return len(text)
}

// stringLength gives the length, quotes included, of the string that text
// begins with.
func stringLength(text []byte) int {
	i := 1
	for text[i] != '"' {
		if text[i] == '\\' {
			i++
		}
		i++
	}
	return i + 1
}

// unquote gives the bytes that a JSON string stands for; they alias it where
// nothing is escaped.
func unquote(quoted jsontext.Value) []byte {
	raw := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return raw // not reached: the string is known to be valid
	}
	return text
}
