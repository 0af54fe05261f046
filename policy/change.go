package policy

import "github.com/go-json-experiment/json/jsontext"

// proseBytesMax bounds texts written for people.
const proseBytesMax = 1000

// Change is an operator's request to install a Spec.
type Change struct {
	Spec     *Spec
	Balances Balances
	Reason   string  // for the audit, at most 1,000 bytes
	Warnings []Fault // what is possible and perhaps not meant, for the answer
}

func (c *Change) warn(pointer, detail string) {
	c.Warnings = append(c.Warnings, Fault{Pointer: pointer, Detail: detail})
}

// changeOnlyCount is how many members at the end of changeMembers belong to
// the change and not to the stored policy.
const changeOnlyCount = 3

// startNames are what new state may hold; they belong to balances restart,
// which is not available yet either.
var startNames = [...]string{"full", "empty"}

// changeMembers is the wire form of a change, the stored form being all but
// the last changeOnlyCount.
var changeMembers = members[Change]{
	{name: "description", read: func(r *reader, c *Change, v jsontext.Value) { c.Spec.Description = r.text(v, 0, proseBytesMax) }},
	{name: "match", required: true, read: readMatch},
	{name: "per", required: true, read: readPer},
	{name: "ipPrefix", read: readIPPrefix},
	{name: "onMissing", read: func(r *reader, c *Change, v jsontext.Value) {
		c.Spec.OnMissing = readRule[OnMissing](r, v, onMissingNames[:])
	}},
	{name: "limit", required: true, read: readLimit},
	{name: "costs", read: readCosts},
	{name: "onStoreDown", read: readStoreDown},
	{name: "durability", read: func(r *reader, c *Change, v jsontext.Value) {
		c.Spec.Durability = readRule[Durability](r, v, durabilityNames[:])
	}},
	{name: "afterLoss", read: func(r *reader, c *Change, v jsontext.Value) {
		c.Spec.AfterLoss = readRule[AfterLoss](r, v, afterLossNames[:])
	}},
	{name: "mode", read: func(r *reader, c *Change, v jsontext.Value) { c.Spec.Mode = readRule[Mode](r, v, modeNames[:]) }},
	{name: "scope", read: func(r *reader, c *Change, v jsontext.Value) {
		c.Spec.Scope = readRule(r, v, scopeNames[:], ScopeGlobal)
	}},
	{name: "disclose", read: func(r *reader, c *Change, v jsontext.Value) { c.Spec.Disclose = r.boolean(v) }},

	{name: "balances", read: func(r *reader, c *Change, v jsontext.Value) {
		c.Balances = readRule(r, v, balancesNames[:], Keep+1, Keep+2, Keep+3)
	}},
	{name: "start", read: func(r *reader, _ *Change, v jsontext.Value) { readRule[uint8](r, v, startNames[:], 0, 1) }},
	{name: "reason", read: func(r *reader, c *Change, v jsontext.Value) { c.Reason = r.text(v, 0, proseBytesMax) }},
}

// ParseChange reads the body of a policy PUT, checks it and completes it with
// the defaults. The error is an [*Error] with every fault: of reason
// invalid-request when the form is wrong (syntax, types, unknown, duplicate or
// missing members), else policy-invalid when a well-formed policy is
// impossible.
func ParseChange(body []byte) (*Change, error) {
	return parseChange(body, changeMembers)
}

// ParseSpec reads a stored form ([Spec.JSON]) back; errors are those of
// [ParseChange].
func ParseSpec(stored []byte) (*Spec, error) {
	change, err := parseChange(stored, changeMembers[:len(changeMembers)-changeOnlyCount])
	if err != nil {
		return nil, err
	}
	return change.Spec, nil
}

func parseChange(body []byte, table members[Change]) (*Change, error) {
	var r reader
	object, ok := r.document(body)
	if !ok {
		return nil, r.err(ReasonPolicyInvalid)
	}
	change := &Change{Spec: &Spec{
		IPPrefix: defaultIPPrefix(),
		Costs:    Costs{Default: 1},
	}}
	found := readObject(&r, object, change, table)
	r.checkSpec(change.Spec, found)
	if err := r.err(ReasonPolicyInvalid); err != nil {
		return nil, err
	}
	change.warnOfCosts()
	return change, nil
}

// checkSpec checks what takes more than one member of a policy to tell. Where
// one of them is faulty itself there is nothing to compare.
func (r *reader) checkSpec(spec *Spec, found seen) {
	if len(r.faults) > 0 {
		return
	}
	if changeMembers.has(found, "ipPrefix") && !spec.keyedBy(IP) {
		r.faultAt("ipPrefix", `has no meaning unless "per" names ip`)
	}
	if changeMembers.has(found, "afterLoss") && spec.Durability == Durable {
		r.faultAt("afterLoss", "has no meaning for a durable policy, which loses nothing in a crash")
	}
	r.checkShares(spec)
}
