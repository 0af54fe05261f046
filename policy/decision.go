package policy

// Never is the RetryAfterMicros of a request that no wait can make pass: its
// cost is above the limit.
const Never int64 = -1

// Outcome says how sure a decision is.
type Outcome uint8

// The outcomes of a decision.
const (
	Decided   Outcome = iota // the store's own answer
	Uncertain                // no answer within the deadline; the charge may have happened
)

// String gives the outcome's name in JSON and metrics.
func (o Outcome) String() string { return [...]string{"decided", "uncertain"}[o] }

// Source says where a decision came from.
type Source uint8

// The sources of a decision. Later sources are added behind.
const (
	FromStore  Source = iota // decided by the stored functions
	FromPolicy               // decided by the policy alone: it is disabled
	FromReplay               // what was decided before under the same operation id
)

// String gives the source's name in JSON and metrics.
func (s Source) String() string { return [...]string{"store", "policy", "replay"}[s] }

// Decision is the answer to one request.
type Decision struct {
	Policy           *Installed // the policy and version that decided
	Allowed          bool
	Remaining        int64 // whole tokens left, 0 to the limit
	RetryAfterMicros int64 // 0 when allowed, else the exact wait for the same cost; [Never]
	AtMicros         int64 // the instant of the decision on the store's clock; 0 when the store was not asked
	ResetAfterMicros int64 // until the key is full again, counted from the decision
	Outcome          Outcome
	Source           Source

	// Detail is what the general path has to tell beside the tightest policy's
	// figures above; nil when one policy was checked on the fast path.
	Detail *Detail
}

// ResetAtMicros is the instant at which the key is full again, at most
// [InstantMicrosMax]; 0 for a decision without the store's clock.
func (d *Decision) ResetAtMicros() int64 {
	if d.AtMicros == 0 {
		return 0
	}
	return InstantAfter(d.AtMicros, d.ResetAfterMicros)
}

// Used gives the policy of an id in the version that decided, nil when it had
// no part in the decision.
func (d *Decision) Used(id string) *Installed {
	if d.Policy.ID == id {
		return d.Policy
	}
	if d.Detail != nil {
		for i := range d.Detail.Parts {
			if part := &d.Detail.Parts[i]; part.Policy.ID == id {
				return part.Policy
			}
		}
	}
	return nil
}

// Detail is the whole of a decision of the general path.
type Detail struct {
	OperationID string // "" when the request had none
	Parts       []DecisionPart
}

// DecisionPart is one policy's part of a decision, ascending by policy id.
type DecisionPart struct {
	Policy           *Installed // the policy and version that decided
	Allowed          bool       // this policy alone allows the request
	Remaining        int64      // whole tokens left, 0 to the limit
	RetryAfterMicros int64      // 0 when allowed, else the exact wait for the same cost; [Never]
	ResetAfterMicros int64      // until nothing is spent any more, counted from the decision; [Never] for a key that is blocked
	Slot             Slot       // what a concurrency policy handed out; the zero Slot when nothing
}
