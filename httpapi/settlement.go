package httpapi

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/rationhq/ration/policy"
)

// settle replaces the cost that an operation was charged by what it came to
// cost, once; a repetition is answered alike.
func (d *decisions) settle(w http.ResponseWriter, r *http.Request, gateway *policy.Gateway) (int, error) {
	if _, err := readQuery(r); err != nil {
		return 0, err
	}
	scratch := d.scratches.take()
	defer d.scratches.giveBack(scratch)
	body, err := readJSON(r, scratch.body, decisionBytesMax)
	scratch.body = body
	if err != nil {
		return 0, err
	}
	id := pathText(r, "operationId")
	settlement, err := policy.ParseSettlement(gateway, id, body)
	if err != nil {
		return 0, err
	}
	settled, err := d.operations.Settle(r.Context(), settlement)
	if err != nil {
		return 0, err
	}
	if err := refusal(settled.Status); err != nil {
		return 0, err
	}
	scratch.answer = appendSettled(scratch.answer, id, &settled)
	return d.writeJSON(w, r, scratch.answer), nil
}

// refusal is the error of a settlement that changed nothing, nil of one that
// was made, now or before.
func refusal(status policy.SettleStatus) error {
	switch status {
	case policy.SettleDone, policy.SettleReplayed:
		return nil
	case policy.SettleConflict:
		return conflict(reasonSettlementConflict, "The operation is settled already, by another actual cost.")
	case policy.SettleSlots:
		return conflict(reasonSettlementOfSlots, "The operation took slots alone; release them.")
	case policy.SettleUnknown:
	}
	return notFound("Nothing was charged under this operation id.")
}

// appendSettled appends the JSON of a settlement.
func appendSettled(dst []byte, operationID string, settled *policy.Settled) []byte {
	dst = append(dst, `{"operationId":`...)
	dst = appendString(dst, operationID)
	dst = append(dst, `,"settledAt":`...)
	dst = appendInstant(dst, settled.AtMicros)
	dst = append(dst, `,"replayed":`...)
	dst = strconv.AppendBool(dst, settled.Status == policy.SettleReplayed)
	dst = append(dst, `,"clamped":`...)
	dst = strconv.AppendBool(dst, slices.ContainsFunc(settled.Parts, func(p policy.SettledPart) bool { return p.Clamped }))
	dst = append(dst, `,"policies":[`...)
	for i := range settled.Parts {
		part := &settled.Parts[i]
		dst = append(separate(dst), '{')
		dst = appendPolicy(dst, part.Policy, part.Version)
		dst = append(dst, `,"charged":`...)
		dst = strconv.AppendInt(dst, part.Charged, 10)
		dst = append(dst, `,"actual":`...)
		dst = strconv.AppendInt(dst, part.Actual, 10)
		dst = append(dst, `,"applied":`...)
		dst = strconv.AppendBool(dst, part.Applied)
		dst = append(dst, `,"clamped":`...)
		dst = strconv.AppendBool(dst, part.Clamped)
		dst = append(dst, '}')
	}
	return append(dst, "]}\n"...)
}
