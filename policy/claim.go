package policy

import (
	"encoding/hex"
	"fmt"
)

// Claim is one request on the store's general path: what it asks of every
// policy that it has to pass. It gets all of it or takes nothing.
type Claim struct {
	Operation Key   // of the operation id ([OperationKeyOf]); zero: it has none
	Content   Key   // fingerprint of the request's attributes ([ContentOf]); a repeat has the same
	Stated    int64 // the stated cost in tokens, 0 when none is stated
	Peek      bool  // answer, take nothing; such a claim has no operation id

	// Checks are what it has to pass, ascending by policy id. A claim without
	// any has an operation id and is only looked up: nothing new is decided.
	Checks []Check
}

// Claims are what one call of the store decides, in this order. No operation
// occurs twice.
type Claims struct {
	Shard           int32
	Generation      int64 // the generation of the policy set the checks were matched under
	NowMicros       int64 // the test clock; 0 in production: the store's own clock
	RetentionMicros int64 // how long the outcome of an operation id is kept at least
	Claims          []Claim
}

// ClaimStatus says what became of a claim.
type ClaimStatus uint8

// The statuses of a claim, by their numbers in SQL. Only the first two behind
// ClaimAgain have a verdict; with every other nothing was charged.
const (
	ClaimAgain      ClaimStatus = iota // not decided by this call: a row vanished, or the hold left it out; ask again
	ClaimDecided                       // decided by this call
	ClaimReplayed                      // decided before under the same operation id; the verdict is that one
	ClaimReused                        // the operation id belongs to another request
	ClaimInProgress                    // another call decides the same operation id at this moment
	ClaimHeld                          // another session holds a row of it
	ClaimUnknown                       // it has no checks, and nothing is stored under its operation id
)

// Verdict is the store's answer to one [Claim].
type Verdict struct {
	Status   ClaimStatus
	Allowed  bool  // every enforced policy allows it; for a peek: would
	AtMicros int64 // the instant of the decision on the store's clock; a replay's is the first one's
	Parts    []Part
}

// Part is one policy's part of a verdict, ascending by the policy's id at the
// time of the decision.
type Part struct {
	Policy           int32 // the store's number of the policy
	Version          int   // that decided
	Allowed          bool  // this policy alone allows the claim
	Remaining        int64 // whole tokens left after the claim, 0 to the limit
	RetryAfterMicros int64 // 0 when allowed, else the exact wait for the same cost; [Never]
	ResetAfterMicros int64 // until nothing is spent any more, counted from the decision
	Cost             int64 // tokens charged for the claim; 0 where nothing was, as by a peek or a denied claim
	Slot             Slot  // what a concurrency policy handed out; the zero Slot when nothing
}

// Verdicts is the store's answer to [Claims].
type Verdicts struct {
	Stale     bool  // the claims' generation is not the store's: nothing was decided
	NowMicros int64 // the instant of the call on the store's clock
	Verdicts  []Verdict
}

// SlotID names a slot: 128 random bits.
type SlotID [16]byte

// Slot is concurrency that a decision acquired, held until it is released or
// expires.
type Slot struct {
	ID              SlotID
	ExpiresAtMicros int64 // on the store's clock
}

// String writes the id as 32 hexadecimal digits.
func (s SlotID) String() string { return hex.EncodeToString(s[:]) }

// ParseSlotID reads what [SlotID.String] writes.
func ParseSlotID(text string) (SlotID, error) {
	var id SlotID
	if len(text) != hex.EncodedLen(len(id)) {
		return SlotID{}, fmt.Errorf("a slot id has %d hexadecimal digits", hex.EncodedLen(len(id)))
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		return SlotID{}, fmt.Errorf("a slot id is hexadecimal: %w", err)
	}
	return id, nil
}

// Settlement replaces the cost that an operation was charged by what it came
// to cost.
type Settlement struct {
	Operation  Key   // see [OperationKeyOf]
	ActualCost int64 // tokens, 0 to CostMax; 0 gives everything back
}

// SettleStatus says what became of a settlement.
type SettleStatus uint8

// The statuses of a settlement, by their numbers in SQL.
const (
	SettleDone     SettleStatus = iota // the cost was replaced
	SettleReplayed                     // it was already, by the same cost
	SettleConflict                     // it was already, by another cost
	SettleUnknown                      // no such operation, or it was denied
	SettleSlots                        // it was charged by concurrency policies alone, whose slots are released instead
)

// Settled is the answer to a [Settlement].
type Settled struct {
	Status   SettleStatus
	AtMicros int64         // when it was settled, on the store's clock
	Parts    []SettledPart // of SettleDone and SettleReplayed, in the order of the decision
}

// SettledPart is what a settlement did to one policy's charge.
type SettledPart struct {
	Policy  string // the policy's id at the time of the settlement
	Version int    // that charged
	Charged int64  // tokens, before the settlement
	Actual  int64  // tokens, after it: Charged where this policy does not charge by the request's cost
	Applied bool   // the key's state was changed; false when the charge counts nowhere any more
	Clamped bool   // the extra charge went beyond what a key can owe, and was cut there
}
