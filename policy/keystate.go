package policy

// SlotsShownMax is how many of a key's live slots a look at it tells of.
const SlotsShownMax = 1000

// KeyState is what the store holds of one key of a policy, of whatever
// algorithm, as the next decision would find it. Nothing is taken by looking
// at it.
type KeyState struct {
	Policy           *Installed              // in force
	Key              Key                     // under which it is stored
	Values           *[AttributeCount]string // of the policy's `per`; nil where the key alone is known
	Limit            int64                   // whole tokens: the policy's, or that of the key's override
	Remaining        int64                   // whole tokens left; below zero where more is used than the limit allows
	AtMicros         int64                   // the instant that this is told of, on the store's clock
	ResetAfterMicros int64                   // until nothing is spent any more, counted from then
	AheadMicros      int64                   // how far the stored state is ahead of the clock, 0 when it is not
	Stored           bool                    // false: there is no row, so the key is idle
	SettledVersion   int                     // under which the row was written last; 0 where there is none, and for slots
	Slots            []HeldSlot              // live ones, the first to expire first, at most [SlotsShownMax]
	Override         *KeyOverride            // nil where the key has none
}

// HeldSlot is a live slot and how much of its key's limit it holds.
type HeldSlot struct {
	Slot

	Cost int64 // units of concurrency
}

// KeyOverride is the exception for a key, as an operator made it.
type KeyOverride struct {
	Action          OverrideAction
	Reason          string
	Actor           string
	ExpiresAtMicros int64 // 0: it does not expire
}
