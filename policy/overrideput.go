package policy

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// overrideSecondsMax bounds how long an override lasts that says so in seconds:
// 366 days. One for longer says until when, or lasts until it is removed.
const overrideSecondsMax = 366 * 24 * 60 * 60

// OverridePut is an operator's word on one key of a policy. It replaces the
// override that the key has.
type OverridePut struct {
	Author

	PolicyID        string
	Values          [AttributeCount]string // of the policy's `per`, see [Spec.CheckKey]
	Action          OverrideAction
	Limit           *Limit // of another limit: whole, and of the policy's own kind; else nil
	ExpiresAtMicros int64  // on the store's clock; 0: see LastsMicros
	LastsMicros     int64  // from the change on; 0 with no ExpiresAtMicros: until it is removed
	Reason          string // for the audit, at most 1,000 bytes
}

// OverrideRemoval is an operator's word that a key has no override any more.
type OverrideRemoval struct {
	Author

	PolicyID string
	Values   [AttributeCount]string
	Reason   string
}

// OverrideRecord is an override in force, as its operator made it.
type OverrideRecord struct {
	KeyOverride

	Number          int64 // ascending in the order in which they were made, never reused
	PolicyID        string
	Values          [AttributeCount]string
	Limit           *Limit // of another limit, else nil
	CreatedAtMicros int64
}

var overrideMembers = members[OverridePut]{
	{name: "action", required: true, read: func(r *reader, o *OverridePut, v jsontext.Value) {
		o.Action = readRule[OverrideAction](r, v, overrideActionNames[:])
	}},
	{name: "limit", read: func(r *reader, o *OverridePut, v jsontext.Value) { o.Limit = r.limit(v) }},
	{name: "reason", required: true, read: func(r *reader, o *OverridePut, v jsontext.Value) { o.Reason = r.text(v, 1, proseBytesMax) }},
	{name: "expiresAt", read: func(r *reader, o *OverridePut, v jsontext.Value) { o.ExpiresAtMicros = r.instant(v) }},
	{name: "expiresInSeconds", read: func(r *reader, o *OverridePut, v jsontext.Value) {
		o.LastsMicros = r.positive(v, overrideSecondsMax) * int64(time.Second/time.Microsecond)
	}},
}

// ParseOverride reads the body of an override. The error is an [*Error] with
// every fault: of reason invalid-request when the form is wrong, else
// policy-invalid.
func ParseOverride(body []byte) (*OverridePut, error) {
	var r reader
	put := new(OverridePut)
	if object, ok := r.document(body); ok {
		found := readObject(&r, object, put, overrideMembers)
		hasLimit, known := overrideMembers.has(found, "limit"), overrideMembers.has(found, "action") && len(r.faults) == 0
		switch {
		case known && put.Action == OverrideLimit && !hasLimit:
			r.faultFormAt("limit", "is required for the action limit")
		case known && put.Action != OverrideLimit && hasLimit:
			r.faultAt("limit", "has no meaning unless action is limit")
		}
		if overrideMembers.has(found, "expiresAt") && overrideMembers.has(found, "expiresInSeconds") {
			r.faultAt("expiresInSeconds", "has no meaning beside expiresAt")
		}
	}
	if err := r.err(ReasonPolicyInvalid); err != nil {
		return nil, err
	}
	return put, nil
}

// limit reads a limit as policies have it.
func (r *reader) limit(value jsontext.Value) *Limit {
	change := &Change{Spec: new(Spec)}
	readLimit(r, change, value)
	return &change.Spec.Limit
}

// instant reads an instant of RFC 3339, to the microsecond.
func (r *reader) instant(value jsontext.Value) int64 {
	text := r.text(value, 1, TextBytesMax)
	if text == "" {
		return 0
	}
	instant, err := time.Parse(time.RFC3339Nano, text)
	micros := instant.UnixMicro()
	if err != nil || micros < 1 || micros > InstantMicrosMax {
		r.fault("must be an instant as RFC 3339 writes it, such as 2030-01-02T15:04:05Z")
		return 0
	}
	return micros
}

// ParseLimit reads a limit as policies store it ([Limit.JSON]). The error is
// an [*Error] with every fault.
func ParseLimit(stored []byte) (*Limit, error) {
	var r reader
	limit := new(Limit)
	if object, ok := r.document(stored); ok {
		limit = r.limit(object)
	}
	return limit, r.err(ReasonPolicyInvalid)
}
