package policy

import (
	"math/big"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds and defaults of a failure rule.
const (
	storeDownSecondsDefault = 300
	storeDownSecondsMax     = 24 * 60 * 60 // what lasts a day is no outage but a state, and wants a decision
	storeDownInstancesMax   = 100_000      // far more than any deployment; bounds the arithmetic
	storeDownExcessMax      = 10           // all instances together may admit at most this many capacities
)

// StoreDownMode is the way a policy answers when the store gives no answer.
type StoreDownMode uint8

// The failure rules.
const (
	Closed StoreDownMode = iota // 503: we cannot decide
	Local                       // this instance's own share of the limit
	Open                        // allow, marked and bounded
)

var storeDownModeNames = [...]string{"closed", "local", "open"}

// String gives the rule's name in policies.
func (m StoreDownMode) String() string { return storeDownModeNames[m] }

// StoreDown is a policy's failure rule (`onStoreDown`).
type StoreDown struct {
	Mode       StoreDownMode
	Instances  int    // Local: the limit is divided by it; 0: Auto or explicit
	Auto       bool   // Local: divide by the live instances
	Explicit   *Limit // Local: this limit instead of a share
	MaxSeconds int    // Local and Open: of continuous outage, then Closed; default 300
	AcceptOpen bool   // Open: the operator knows what it gives up
}

// storeDownDraft is a failure rule as read, before its members are compared.
type storeDownDraft struct {
	StoreDown
	limit Limit
}

var storeDownMembers = members[storeDownDraft]{
	{name: "mode", required: true, read: func(r *reader, d *storeDownDraft, v jsontext.Value) {
		d.Mode = readRule[StoreDownMode](r, v, storeDownModeNames[:])
	}},
	{name: "instances", read: func(r *reader, d *storeDownDraft, v jsontext.Value) {
		switch {
		case v.Kind() != jsontext.KindString:
			d.Instances = int(r.positive(v, storeDownInstancesMax))
		case string(unquote(v)) == "auto":
			d.Auto = true
		default:
			r.faultForm("must be a number or \"auto\"")
		}
	}},
	{name: "capacity", read: func(r *reader, d *storeDownDraft, v jsontext.Value) { d.limit.Capacity = r.positive(v, unitsMax) }},
	{name: "refillTokens", read: func(r *reader, d *storeDownDraft, v jsontext.Value) { d.limit.RefillTokens = r.decimal(v) }},
	{name: "refillSeconds", read: func(r *reader, d *storeDownDraft, v jsontext.Value) { d.limit.RefillSeconds = r.decimal(v) }},
	{name: "maxSeconds", read: func(r *reader, d *storeDownDraft, v jsontext.Value) {
		d.MaxSeconds = int(r.positive(v, storeDownSecondsMax))
	}},
	{name: "acceptOpen", read: func(r *reader, d *storeDownDraft, v jsontext.Value) { d.AcceptOpen = r.boolean(v) }},
}

// storeDownTakes lists the members that each mode takes beside itself.
var storeDownTakes = [...]map[string]bool{
	Closed: {},
	Local:  {"instances": true, "capacity": true, "refillTokens": true, "refillSeconds": true, "maxSeconds": true},
	Open:   {"maxSeconds": true, "acceptOpen": true},
}

// readStoreDown reads a policy's failure rule.
func readStoreDown(r *reader, change *Change, value jsontext.Value) {
	draft := storeDownDraft{StoreDown: StoreDown{MaxSeconds: storeDownSecondsDefault}}
	faultsBefore := len(r.faults)
	found := readObject(r, value, &draft, storeDownMembers)
	if len(r.faults) > faultsBefore {
		return
	}
	for _, member := range storeDownMembers {
		if storeDownMembers.has(found, member.name) && member.name != "mode" && !storeDownTakes[draft.Mode][member.name] {
			r.faultAt(member.name, "has no meaning for "+draft.Mode.String())
		}
	}
	switch draft.Mode {
	case Closed:
		draft.MaxSeconds = 0
	case Local:
		r.checkLocal(&draft, found)
	case Open:
		if !draft.AcceptOpen {
			change.warn(WarnOpen, r.pointer(), `lets every request pass while the store gives no answer, once it is acted upon; say "acceptOpen": true when that is meant`)
		}
	}
	if draft.Mode != Closed {
		change.warn(WarnNotActedUpon, r.pointer(), "is kept, but not acted upon yet: while the store gives no answer the service answers 503")
	}
	change.Spec.OnStoreDown = draft.StoreDown
}

// checkLocal checks that a local rule is a share or a limit of its own.
func (r *reader) checkLocal(draft *storeDownDraft, found seen) {
	figures := [...]string{"capacity", "refillTokens", "refillSeconds"}
	given := 0
	for _, name := range figures {
		if storeDownMembers.has(found, name) {
			given++
		}
	}
	shared := storeDownMembers.has(found, "instances")
	switch {
	case shared && given > 0:
		r.fault("must have either instances or a limit of its own, not both")
	case !shared && given == 0:
		r.fault("needs instances, or capacity, refillTokens and refillSeconds")
	case given > 0 && given < len(figures):
		for _, name := range figures {
			if !storeDownMembers.has(found, name) {
				r.faultAt(name, "is required")
			}
		}
	case given > 0:
		r.checkRate(&draft.limit)
		draft.Explicit = &draft.limit
	}
}

// checkShares refuses a local rule whose instances together could admit far
// more than the limit. Each holds max(capacity/instances, largest cost), which
// for the former is the limit itself: only the costs can exceed it.
func (r *reader) checkShares(spec *Spec) {
	largest := spec.Costs.largest()
	together := new(big.Int).Mul(big.NewInt(int64(spec.OnStoreDown.Instances)), big.NewInt(largest))
	bound := new(big.Int).Mul(big.NewInt(storeDownExcessMax), big.NewInt(spec.Limit.Capacity))
	if together.Cmp(bound) > 0 {
		r.enter("onStoreDown")
		r.faultAt("instances", "times the largest cost must be at most ten times the "+spec.Limit.Algorithm.capacityMember())
		r.leave()
	}
}

// storeDown writes the failure rule.
func (w *writer) storeDown(rule *StoreDown) {
	w.open("onStoreDown", '{')
	w.text("mode", rule.Mode.String())
	switch {
	case rule.Explicit != nil:
		w.limit(rule.Explicit)
	case rule.Auto:
		w.text("instances", "auto")
	case rule.Instances > 0:
		w.integer("instances", int64(rule.Instances))
	}
	if rule.Mode != Closed {
		w.integer("maxSeconds", int64(rule.MaxSeconds))
	}
	if rule.AcceptOpen {
		w.literal("acceptOpen", "true")
	}
	w.close('}')
}
