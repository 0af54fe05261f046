package policy

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// parameters reads the attributes of a request from the parameters of a query,
// by the names that requests use.
func (r *reader) parameters(parameters map[string][]string, request *Request) seen {
	attributes := requestMembers[:AttributeCount]
	var found seen
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		i := attributes.index(name)
		if i < 0 {
			r.faultFormAt(name, "is not a known parameter")
			continue
		}
		found |= 1 << i
		r.enter(name)
		if values := parameters[name]; len(values) != 1 {
			r.faultForm("must occur once")
		} else if text, err := jsontext.AppendQuote(nil, values[0]); err != nil {
			r.faultForm("must be valid UTF-8")
		} else {
			attributes[i].read(r, request, text)
		}
		r.leave()
	}
	return found
}

// ParseValues reads attributes from the parameters of a query, by the names
// that requests use, in canonical form. The error is an [*Error] of reason
// invalid-request with every fault. Which of them a policy's key takes is for
// [Spec.CheckKey] to say.
func ParseValues(parameters map[string][]string) (*[AttributeCount]string, error) {
	var r reader
	var request Request
	r.parameters(parameters, &request)
	if err := r.err(ReasonInvalidRequest); err != nil {
		return nil, err
	}
	return &request.Values, nil
}

// CheckKey says whether values name one key of the policy: every attribute of
// its `per`, and none beside them. The error is an [*Error] of reason
// invalid-request with every fault.
func (s *Spec) CheckKey(values *[AttributeCount]string) error {
	var r reader
	for attribute := range Attribute(AttributeCount) {
		switch keyed := s.keyedBy(attribute); {
		case keyed && values[attribute] == "":
			r.faultFormAt(attribute.RequestMember(), "is required: it is part of the policy's key")
		case !keyed && values[attribute] != "":
			r.faultFormAt(attribute.RequestMember(), "is no part of the policy's key")
		}
	}
	return r.err(ReasonInvalidRequest)
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
