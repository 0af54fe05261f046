package policy

// ShadowKeysMax is how many keys of one policy version a report names: the
// first of which a request would have been denied. What others would have been
// denied is counted with all.
const ShadowKeysMax = 1000

// ShadowCounts are requests that a policy version decided while it was a
// shadow. Instants are those of the decisions, on the store's clock.
type ShadowCounts struct {
	Decided       int64 // requests
	Denied        int64 // of these, those that it would have denied
	FirstAtMicros int64
	LastAtMicros  int64
}

// ShadowDenials are requests of one key that a shadow would have denied.
type ShadowDenials struct {
	Key           Key
	Who           string // a JSON object: the values of the policy's `per` by their names
	Denied        int64
	FirstAtMicros int64
	LastAtMicros  int64
}

// ShadowSeen is what an instance has seen of one policy version while it was a
// shadow.
type ShadowSeen struct {
	ShadowCounts

	Policy  int32
	Version int
	Keys    []ShadowDenials // at most ShadowKeysMax; Denied counts others too
}

// ShadowReport is a page of what a policy version would have done.
type ShadowReport struct {
	ShadowCounts

	ID       string // the policy's
	Version  int
	KeyCount int             // that are named, at most ShadowKeysMax
	Named    int64           // denials of these keys
	Keys     []ShadowDenials // the page, the most denied first
}

// ShadowCursor is where a page of a report begins: behind a key that so many
// requests of were denied. The zero cursor begins at the first.
type ShadowCursor struct {
	Denied int64
	Key    Key
}
