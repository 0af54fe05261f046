package policy

import "encoding/hex"

// InstanceID names one run of the service.
type InstanceID [16]byte

// String writes the id as 32 hexadecimal digits.
func (id InstanceID) String() string { return hex.EncodeToString(id[:]) }

// Instance is one run of the service, as it has told the store. Instants are
// of the store's clock.
type Instance struct {
	ID              InstanceID
	Name            string // the operator's, or the machine's
	Version         string // of the program
	StartedAtMicros int64  // 0 before the store was first told
	SeenAtMicros    int64
	Generation      int64 // confirmed: nothing it answers is of an older one, but for calls that were under way
	Alive           bool  // seen within 5 s
	Awaited         bool  // seen within 15 s: a change that is to be confirmed waits for it
}

// Has says whether what a change of the generation installed is in force in
// the instance.
func (i *Instance) Has(generation int64) bool { return i.Generation >= generation }

// Installation is a policy's version in force, and the instances of the
// service.
type Installation struct {
	ID         string // the policy's
	Version    int
	Generation int64 // of its last change, one of its overrides and its mode included
	Instances  []Instance
}
