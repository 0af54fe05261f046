package policy

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// CanonicalValue reads the text of one attribute as the member of a request is
// read ([ParseRequest]). The error is worded as the Detail of a [Fault].
func CanonicalValue(attribute Attribute, text string) (string, error) {
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return "", errors.New("must be valid UTF-8")
	}
	var r reader
	var request Request
	requestMembers[attribute].read(&r, &request, quoted)
	if len(r.faults) > 0 {
		return "", errors.New(r.faults[0].Detail)
	}
	return request.Values[attribute], nil
}
