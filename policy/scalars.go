package policy

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

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

// decimal reads an exact decimal above 0.
func (r *reader) decimal(value jsontext.Value) Decimal {
	if !r.isNumber(value) {
		return Decimal{}
	}
	number, err := ParseDecimal(string(value))
	if err != nil {
		r.fault(err.Error())
		return Decimal{}
	}
	if number.Rat().Sign() <= 0 {
		r.fault("must be greater than 0")
		return Decimal{}
	}
	return number
}
