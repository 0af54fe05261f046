package policy

// Spec is the content of one policy version: which requests it matches, which
// attributes make its key, the limit, the costs and the failure rule.
// [ParseChange] reads, checks and completes it with the defaults; its JSON
// form ([Spec.JSON]) is what the store keeps.
type Spec struct {
	Description string
	Match       Match
	Per         []Attribute // ascending and distinct; empty: one key for all
	IPPrefix    IPPrefix    // how an address is cut when Per has IP
	OnMissing   OnMissing
	Limit       Limit
	Costs       Costs
	OnStoreDown StoreDown
	AfterLoss   AfterLoss // fast policies only
	Durability  Durability
	Mode        Mode
	Scope       Scope
	Disclose    bool // show figures of a key that holds none of the caller's own identities
}

// Match says which requests a policy speaks of: every given field must match.
type Match [AttributeCount]Patterns

// Patterns are exact names, prefix wildcards (`report.*`, `*`) or, for IP,
// addresses and CIDR prefixes. Empty: the field is absent and matches any
// request, one without the attribute too.
type Patterns []string

// IPPrefix is the number of leading bits of an address that make the key.
type IPPrefix struct {
	V4 int // 1 to 32, default 32
	V6 int // 1 to 128, default 64
}

// OnMissing says what a matching policy does with a request that lacks an
// attribute of its key.
type OnMissing uint8

// The rules for a missing attribute.
const (
	Skip   OnMissing = iota // the policy does not apply; counted
	Reject                  // the request is refused (400), naming the attribute
)

// Algorithm is how a limit is kept.
type Algorithm uint8

// TokenBucket refills continuously up to a capacity; the only algorithm yet.
const TokenBucket Algorithm = iota

// Limit is a token bucket: Capacity tokens, refilled at
// RefillTokens/RefillSeconds.
type Limit struct {
	Algorithm     Algorithm
	Capacity      int64   // whole tokens, >= 1, Capacity*Rate.D < 2^62
	RefillTokens  Decimal // > 0, exactly as written
	RefillSeconds Decimal // > 0, exactly as written
	Rate          Rate    // RefillTokens/RefillSeconds in stored units
}

// Rate is a refill rate in lowest terms: N/D tokens per microsecond. A
// balance is stored in units of 1/D token, so each microsecond earns exactly
// N units and a token is exactly D units. 1 <= N < 2^62, D >= 1.
type Rate struct{ N, D int64 }

// Costs says what a policy charges.
type Costs struct {
	Default    int64            // tokens, >= 1
	Operations map[string]int64 // by exact operation; beats everything else
	Max        int64            // the largest cost a request may state, 0: it may not state one
}

// StoreDownMode is the way a policy answers when the store gives no answer.
type StoreDownMode uint8

// The failure rules.
const (
	Closed StoreDownMode = iota // 503: we cannot decide
	Local                       // this instance's own share of the limit
	Open                        // allow, marked and bounded
)

// StoreDown is a policy's failure rule (`onStoreDown`).
type StoreDown struct {
	Mode       StoreDownMode
	Instances  int    // Local: the limit is divided by it; 0: Auto or explicit
	Auto       bool   // Local: divide by the live instances
	Explicit   *Limit // Local: this limit instead of a share
	MaxSeconds int    // Local and Open: of continuous outage, then Closed; default 300
	AcceptOpen bool   // Open: the operator knows what it gives up
}

// AfterLoss says what a fast policy's buckets hold after PostgreSQL crashed
// and their state was lost.
type AfterLoss uint8

// The rules for lost state.
const (
	LossIdle  AfterLoss = iota // what an idle bucket holds
	LossEmpty                  // nothing at the instant of the loss, refilling from there
)

// Mode says whether a policy denies.
type Mode uint8

// The modes.
const (
	Enforce  Mode = iota // evaluated, charged, denies
	Shadow               // evaluated and charged against its own state, never denies
	Disabled             // matched, not evaluated
)

// Scope says how far a budget reaches.
type Scope uint8

// The scopes.
const (
	ScopeRegion Scope = iota // each region's store has the whole limit
	ScopeGlobal              // one budget for all regions
)

// Change is an operator's request to install a Spec.
type Change struct {
	Spec     *Spec
	Balances Balances
	Reason   string // for the audit, at most 1,000 bytes
}

// Balances says what a change does to existing balances, the idle bucket
// included.
type Balances uint8

// Keep leaves what was earned: floor(balance*d_new/d_old), clamped to the new
// capacity. It is the default and the only rule yet.
const Keep Balances = iota

// String gives the rule's name in JSON and SQL.
func (b Balances) String() string { return [...]string{"keep"}[b] }
