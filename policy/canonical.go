package policy

import (
	"errors"
	"net/netip"

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

// KeyValue is one attribute of a key, for people to read.
type KeyValue struct {
	Attribute Attribute
	Value     string // an address that is cut is written as a CIDR prefix
}

// KeyValues gives what [KeyOf] makes a key of, in the order of spec.Per.
func (s *Spec) KeyValues(values *[AttributeCount]string) []KeyValue {
	of := make([]KeyValue, len(s.Per))
	for i, attribute := range s.Per {
		of[i] = KeyValue{Attribute: attribute, Value: values[attribute]}
		if attribute != IP {
			continue
		}
		if address, err := netip.ParseAddr(values[IP]); err == nil {
			if masked, bits := s.IPPrefix.cut(address); bits < address.BitLen() {
				of[i].Value = netip.PrefixFrom(masked, bits).String()
			}
		}
	}
	return of
}
