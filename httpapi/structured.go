package httpapi

import (
	"strconv"
	"strings"
)

// structuredIntegerMax is the largest Integer of RFC 9651 (section 3.3.1): 15
// digits. A larger figure is clamped, for a malformed member makes clients
// ignore the whole field.
const structuredIntegerMax = 999_999_999_999_999

// appendStructuredInteger appends an RFC 9651 Integer. The fields it serves
// count, so that a negative figure is written as 0.
func appendStructuredInteger(dst []byte, n int64) []byte {
	return strconv.AppendInt(dst, min(max(n, 0), structuredIntegerMax), 10)
}

// appendStructuredString appends an RFC 9651 String. It holds printable ASCII
// only; any other byte becomes "?", so that the field still parses.
func appendStructuredString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ' || c > '~':
			dst = append(dst, '?')
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// parseStructuredString reads an RFC 9651 String that is the whole of value.
func parseStructuredString(value string) (text string, ok bool) {
	inside, quoted := strings.CutPrefix(value, `"`)
	inside, closed := strings.CutSuffix(inside, `"`)
	if !quoted || !closed {
		return "", false
	}
	unescaped := make([]byte, 0, len(inside))
	for i := 0; i < len(inside); i++ {
		c := inside[i]
		switch {
		case c == '\\' && i+1 < len(inside) && (inside[i+1] == '"' || inside[i+1] == '\\'):
			i++
			c = inside[i]
		case c == '\\' || c == '"' || c < ' ' || c > '~':
			return "", false
		}
		unescaped = append(unescaped, c)
	}
	return string(unescaped), true
}
