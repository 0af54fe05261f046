package policy

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// killSwitchSecondsMax bounds how long a kill switch lies: a day. Who needs it
// for longer changes the policies.
const killSwitchSecondsMax = 24 * 60 * 60

// KillSwitchThrow is an operator's word that the enforced policies whose ids
// begin with a prefix be shadows for a while.
type KillSwitchThrow struct {
	Author

	Prefix      string // "": all policies
	LastsMicros int64  // 1 s to 24 h
	Reason      string // for the audit, at most 1,000 bytes
}

// KillSwitchReturn is an operator's word that a kill switch be taken back.
type KillSwitchReturn struct {
	Author

	Prefix string
	Reason string
}

// KillSwitch is one that lies over policies.
type KillSwitch struct {
	Prefix          string
	Actor           string
	Reason          string
	CreatedAtMicros int64
	ExpiresAtMicros int64
}

var killSwitchMembers = members[KillSwitchThrow]{
	{name: "prefix", required: true, read: func(r *reader, k *KillSwitchThrow, v jsontext.Value) {
		if k.Prefix = r.text(v, 0, policyIDBytesMax); !IsIDPrefix(k.Prefix) {
			r.fault(`must be what a policy's id begins with, or "" for all`)
		}
	}},
	{name: "forSeconds", required: true, read: func(r *reader, k *KillSwitchThrow, v jsontext.Value) {
		k.LastsMicros = r.positive(v, killSwitchSecondsMax) * int64(time.Second/time.Microsecond)
	}},
	{name: "reason", required: true, read: func(r *reader, k *KillSwitchThrow, v jsontext.Value) {
		k.Reason = r.text(v, 1, proseBytesMax)
	}},
}

// ParseKillSwitch reads the body of a kill switch. The error is an [*Error] of
// reason invalid-request with every fault.
func ParseKillSwitch(body []byte) (*KillSwitchThrow, error) {
	var r reader
	throw := new(KillSwitchThrow)
	if object, ok := r.document(body); ok {
		readObject(&r, object, throw, killSwitchMembers)
	}
	if err := r.err(ReasonInvalidRequest); err != nil {
		return nil, err
	}
	return throw, nil
}

// IsIDPrefix says whether a policy's id can begin so, or "" for any.
func IsIDPrefix(prefix string) bool { return prefix == "" || isPolicyID(prefix) }
