package policy

import (
	"fmt"
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

// Rollback is an operator's request to install the content of an older version
// again, as a new one.
type Rollback struct {
	Version  int // whose content is wanted
	balances Balances
	start    Start
	reason   string
}

var rollbackMembers = members[Rollback]{
	{name: "version", required: true, read: func(r *reader, b *Rollback, v jsontext.Value) {
		b.Version = int(r.positive(v, math.MaxInt32))
	}},
	{name: "balances", read: func(r *reader, b *Rollback, v jsontext.Value) {
		b.balances = readRule[Balances](r, v, balancesNames[:])
	}},
	{name: "start", read: func(r *reader, b *Rollback, v jsontext.Value) {
		b.start = StartFull + readRule[Start](r, v, startNames[:])
	}},
	{name: "reason", read: func(r *reader, b *Rollback, v jsontext.Value) { b.reason = r.text(v, 0, proseBytesMax) }},
}

// ParseRollback reads the body of a rollback. The error is an [*Error] of
// reason invalid-request with every fault.
func ParseRollback(body []byte) (*Rollback, error) {
	var r reader
	rollback := new(Rollback)
	if object, ok := r.document(body); ok {
		readObject(&r, object, rollback, rollbackMembers)
	}
	if err := r.err(ReasonInvalidRequest); err != nil {
		return nil, err
	}
	return rollback, nil
}

// Change makes the change that installs the older version's content, with the
// warnings of that content. The error is an [*Error] of reason policy-invalid
// where that content does not go with what is to become of the balances.
func (b *Rollback) Change(content *Spec) (*Change, error) {
	change, err := parseStored(content.JSON())
	if err != nil {
		return nil, err
	}
	change.Balances, change.Start, change.Reason = b.balances, b.start, b.reason
	if change.Reason == "" {
		change.Reason = fmt.Sprintf("rollback to version %d", b.Version)
	}
	var r reader
	r.checkBalances(change)
	if err := r.err(ReasonPolicyInvalid); err != nil {
		return nil, err
	}
	return change, nil
}
