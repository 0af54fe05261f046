package policy

import "github.com/go-json-experiment/json/jsontext"

// settlementForm is the wire form of a [Settlement].
type settlementForm struct {
	account    string // whose operation it is, "" when it has no account
	actualCost int64
}

var settlementMembers = members[settlementForm]{
	{name: "verifiedAccount", read: func(r *reader, s *settlementForm, v jsontext.Value) { s.account = r.text(v, 1, TextBytesMax) }},
	{name: "actualCost", required: true, read: func(r *reader, s *settlementForm, v jsontext.Value) { s.actualCost = r.actualCost(v) }},
}

// ParseSettlement reads the body of a gateway's settlement of an operation id,
// which is scoped as in [OperationKeyOf]. The error is an [*Error] of reason
// invalid-request, or gateway-scope, with every fault.
func ParseSettlement(gateway *Gateway, operationID string, body []byte) (Settlement, error) {
	var r reader
	object, ok := r.document(body)
	if !ok {
		return Settlement{}, r.err(ReasonInvalidRequest)
	}
	var form settlementForm
	readObject(&r, object, &form, settlementMembers)
	if err := r.err(ReasonInvalidRequest); err != nil {
		return Settlement{}, err
	}
	if err := gateway.CheckAccount(form.account); err != nil {
		return Settlement{}, err
	}
	return Settlement{Operation: OperationKeyOf(gateway.Name, form.account, operationID), ActualCost: form.actualCost}, nil
}

// actualCost reads what an operation came to cost, which unlike a stated cost
// may be nothing: 0 to CostMax.
func (r *reader) actualCost(value jsontext.Value) int64 {
	switch {
	case string(value) == "0":
		return 0
	case value.Kind() == jsontext.KindNumber && value[0] == '-':
		r.fault("must be at least 0")
		return 0
	}
	return r.positive(value, CostMax)
}
