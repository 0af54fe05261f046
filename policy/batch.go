package policy

// Key is the stored name of a bucket: 128 bits of SHA-256 over policy id,
// attribute names and values (see [KeyOf]).
type Key [16]byte

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

// AskStatus says what became of one ask.
type AskStatus uint8

// The statuses of an ask. Only Answered has figures; with any other nothing
// was charged.
const (
	Answered AskStatus = iota
	Again              // the fast path could not decide: ask the settling path
	Held               // another session holds the row beyond the call's bound
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
