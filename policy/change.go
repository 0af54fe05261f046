package policy

import "github.com/go-json-experiment/json/jsontext"

// proseBytesMax bounds texts written for people.
const proseBytesMax = 1000

// Change is an operator's request to install a Spec.
type Change struct {
	Spec     *Spec
	Balances Balances
	Start    Start     // with balances Restart, and only then
	Reason   string    // for the audit, at most 1,000 bytes
	Warnings []Warning // what is possible and perhaps not meant, for the answer
}

// changeOnlyCount is how many members at the end of changeMembers belong to
// the change and not to the stored policy.
const changeOnlyCount = 3

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
		c.Balances = readRule[Balances](r, v, balancesNames[:])
	}},
	{name: "start", read: func(r *reader, c *Change, v jsontext.Value) {
		c.Start = StartFull + readRule[Start](r, v, startNames[:])
	}},
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
	change, err := parseStored(stored)
	if err != nil {
		return nil, err
	}
	return change.Spec, nil
}

// parseStored reads a stored form as the change that would install it again.
func parseStored(stored []byte) (*Change, error) {
	return parseChange(stored, changeMembers[:len(changeMembers)-changeOnlyCount])
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
	r.checkBalances(change)
	if err := r.err(ReasonPolicyInvalid); err != nil {
		return nil, err
	}
	change.warnOfSpec()
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

// checkBalances checks that a change can do with the balances what it says.
func (r *reader) checkBalances(change *Change) {
	if len(r.faults) > 0 {
		return
	}
	algorithm := change.Spec.Limit.Algorithm
	switch {
	case change.Balances == Restart && change.Start == StartNone:
		r.faultAt("start", "is required with balances restart: full or empty")
	case change.Balances != Restart && change.Start != StartNone:
		r.faultAt("start", "has no meaning unless balances is restart")
	}
	switch {
	case change.Balances == Scale && algorithm != TokenBucket:
		r.faultAt("balances", "cannot be scale for "+algorithm.String()+": only a token bucket holds a fraction")
	case change.Balances == Reset && algorithm == Concurrency:
		r.faultAt("balances", "cannot be reset for concurrency: slots are held by work that runs, until they are released or expire")
	case change.Start == StartEmpty && algorithm == Concurrency:
		r.faultAt("start", "cannot be empty for concurrency: nobody would hold the slots, so that nobody could release them")
	}
}
