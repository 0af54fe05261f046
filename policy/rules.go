package policy

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// OnMissing says what a matching policy does with a request that lacks an
// attribute of its key.
type OnMissing uint8

// The rules for a missing attribute.
const (
	Skip   OnMissing = iota // the policy does not apply; counted
	Reject                  // the request is refused (400), naming the attribute
)

var onMissingNames = [...]string{"skip", "reject"}

// String gives the rule's name in policies.
func (o OnMissing) String() string { return onMissingNames[o] }

// Durability says in which tables a policy keeps its state.
type Durability uint8

// The two durabilities.
const (
	Fast    Durability = iota // unlogged tables: no WAL, lost when PostgreSQL crashes
	Durable                   // logged tables: an acknowledged charge survives a crash
)

var durabilityNames = [...]string{"fast", "durable"}

// String gives the durability's name in policies.
func (d Durability) String() string { return durabilityNames[d] }

// AfterLoss says what a fast policy's buckets hold after PostgreSQL crashed
// and their state was lost.
type AfterLoss uint8

// The rules for lost state.
const (
	LossIdle  AfterLoss = iota // what an idle bucket holds
	LossEmpty                  // nothing at the instant of the loss, refilling from there
)

var afterLossNames = [...]string{"idle", "empty"}

// String gives the rule's name in policies.
func (a AfterLoss) String() string { return afterLossNames[a] }

// Mode says whether a policy denies.
type Mode uint8

// The modes.
const (
	Enforce  Mode = iota // evaluated, charged, denies
	Shadow               // evaluated and charged against its own state, never denies
	Disabled             // matched, not evaluated
)

var modeNames = [...]string{"enforce", "shadow", "disabled"}

// String gives the mode's name in policies.
func (m Mode) String() string { return modeNames[m] }

// Scope says how far a budget reaches.
type Scope uint8

// The scopes.
const (
	ScopeRegion Scope = iota // each region's store has the whole limit
	ScopeGlobal              // one budget for all regions
)

var scopeNames = [...]string{"region", "global"}

// String gives the scope's name in policies.
func (s Scope) String() string { return scopeNames[s] }

// Balances says what a change does to existing balances, the idle bucket
// included.
type Balances uint8

// The rules for existing balances. Windows and logs keep what they have counted
// under all but Reset and Restart.
const (
	Keep    Balances = iota // what was earned: floor(balance*d_new/d_old), clamped to the new capacity; the default
	Scale                   // the same fraction of the capacity; token buckets only
	Reset                   // none is spent, by the operator's explicit word; not for slots, which running work holds
	Restart                 // what was kept counts no more: the new state begins as [Start] says
)

var balancesNames = [...]string{"keep", "scale", "reset", "restart"}

// String gives the rule's name in JSON and SQL.
func (b Balances) String() string { return balancesNames[b] }

// Start says how the new state begins after a change of balances [Restart].
type Start uint8

// The beginnings.
const (
	StartNone  Start = iota // no beginning: what is kept goes on
	StartFull               // nothing is spent
	StartEmpty              // everything is spent, at the instant of the change; not for slots
)

// startNames are the names of StartFull and StartEmpty.
var startNames = [...]string{"full", "empty"}

// String gives the beginning's name in JSON and SQL, "" for [StartNone].
func (s Start) String() string {
	if s == StartNone {
		return ""
	}
	return startNames[s-StartFull]
}

// readRule reads the name of one of a rule's values. Those in later are
// described already and not available yet.
func readRule[Rule ~uint8](r *reader, value jsontext.Value, names []string, later ...Rule) Rule {
	if value.Kind() != jsontext.KindString {
		r.faultForm("must be text")
		return 0
	}
	name := string(unquote(value))
	i := slices.Index(names, name)
	switch {
	case i < 0:
		r.fault("must be one of " + strings.Join(names, ", "))
		return 0
	case slices.Contains(later, Rule(i)):
		r.fault(name + " is not available yet")
		return 0
	}
	return Rule(i)
}
