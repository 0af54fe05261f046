package policy

import (
	"encoding/hex"
	"fmt"
)

// Key is the stored name of a bucket: 128 bits of SHA-256 over policy id,
// attribute names and values (see [KeyOf]).
type Key [16]byte

// Hex writes the key as 32 hexadecimal digits.
func (k Key) Hex() string { return hex.EncodeToString(k[:]) }

// ParseKey reads what [Key.Hex] writes.
func ParseKey(text string) (key Key, err error) {
	if len(text) != hex.EncodedLen(len(key)) {
		return Key{}, fmt.Errorf("a key has %d hexadecimal digits", hex.EncodedLen(len(key)))
	}
	if _, err := hex.Decode(key[:], []byte(text)); err != nil {
		return Key{}, fmt.Errorf("a key is hexadecimal: %w", err)
	}
	return key, nil
}

// Ask is one element of a batch: all callers that ask the same key for the
// same cost.
type Ask struct {
	Key    Key
	Policy int32 // the store's number of the policy ([Installed.Number])
	Count  int32 // how many callers ask; 0 peeks: answered, never charged
	Cost   int64 // tokens for each caller, 1 to CostMax
}

// Batch is what one call of the store decides. Asks are in ascending order of
// Key and no key occurs twice.
type Batch struct {
	Durability Durability
	Shard      int32
	Generation int64 // the generation of the policy set the asks were matched under
	NowMicros  int64 // the test clock; 0 in production: the store's own clock
	Asks       []Ask
}

// Hold says what the settling and the general path do about rows that other
// sessions hold.
type Hold uint8

// The ways to meet a held row.
const (
	HoldWait  Hold = iota // for the holder, up to the call's bound
	HoldSkip              // not at all: held rows are left out, nothing is inserted
	HoldAlone             // for a batch of one ask: wait, but only if nobody else waits so for its key
	HoldTry               // on the general path: as HoldWait, but rows that others write meanwhile are left: again
)

// String gives the hold's name in SQL.
func (h Hold) String() string { return [...]string{"wait", "skip", "alone", "try"}[h] }

// AskStatus says what became of one ask.
type AskStatus uint8

// The statuses of an ask. Only Answered has figures; with the other nothing
// was charged.
const (
	Answered    AskStatus = iota
	Again                 // not decided by this call: ask the settling path, or ask it again
	HeldByOther           // left out under [HoldSkip]: another session holds the row
)

// Answer is the store's answer to one [Ask].
type Answer struct {
	Status           AskStatus
	Admitted         int32 // callers admitted, 0 to Count, in arrival order
	Remaining        int64 // whole tokens left after them
	RetryAfterMicros int64 // wait of the first caller not admitted, or of one more of the same cost; [Never]
	ResetAfterMicros int64 // until the bucket is full, from the call's instant
}

// Answers is the store's answer to a [Batch].
type Answers struct {
	Stale     bool  // the batch's generation is not the store's: nothing was decided
	NowMicros int64 // the instant of the call on the store's clock
	Asks      []Answer
}
