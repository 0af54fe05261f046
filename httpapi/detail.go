package httpapi

import (
	"strconv"

	"github.com/rationhq/ration/policy"
)

// appendDetail appends what a decision has to tell beside the figures on top:
// the operation id, the slots to release, and every policy's part where that
// says more than the top does: a shadow policy's tells of denials that were
// none.
func appendDetail(dst []byte, d *policy.Decision) []byte {
	detail := d.Detail
	if detail.OperationID != "" {
		dst = append(dst, `,"operationId":`...)
		dst = appendString(dst, detail.OperationID)
	}
	dst = appendSlots(dst, detail.Parts)
	if len(detail.Parts) > 1 || d.Policy.Mode == policy.Shadow {
		dst = appendParts(dst, detail.Parts)
	}
	return dst
}

// appendSlots appends the slots that a decision acquired, if any.
func appendSlots(dst []byte, parts []policy.DecisionPart) []byte {
	start := len(dst)
	dst = append(dst, `,"slots":[`...)
	for i := range parts {
		slot := &parts[i].Slot
		if slot.ID == (policy.SlotID{}) {
			continue
		}
		dst = append(separate(dst), `{"slotId":"`...)
		dst = append(dst, slot.ID.String()...)
		dst = append(dst, `","policy":`...)
		dst = appendString(dst, parts[i].Policy.ID)
		dst = append(dst, `,"expiresAt":`...)
		dst = appendInstant(dst, slot.ExpiresAtMicros)
		dst = append(dst, '}')
	}
	return endOptional(dst, start)
}

// appendParts appends the parts of the policies that show their figures.
func appendParts(dst []byte, parts []policy.DecisionPart) []byte {
	start := len(dst)
	dst = append(dst, `,"policies":[`...)
	for i := range parts {
		if part := &parts[i]; part.Policy.Spec.ShowsFigures() {
			dst = append(separate(dst), '{')
			dst = appendPart(dst, part)
			dst = append(dst, '}')
		}
	}
	return endOptional(dst, start)
}

// appendPart appends the members of one policy's part, without the braces.
func appendPart(dst []byte, part *policy.DecisionPart) []byte {
	dst = appendPolicy(dst, part.Policy.ID, part.Policy.Version)
	dst = append(dst, `,"limit":`...)
	dst = strconv.AppendInt(dst, part.Policy.Spec.Limit.Capacity, 10)
	dst = append(dst, `,"remaining":`...)
	dst = strconv.AppendInt(dst, part.Remaining, 10)
	dst = append(dst, `,"retryAfterMillis":`...)
	dst = appendWait(dst, waitMillis(part.RetryAfterMicros))
	dst = append(dst, `,"allowed":`...)
	dst = strconv.AppendBool(dst, part.Allowed)
	dst = append(dst, `,"mode":`...)
	return appendString(dst, part.Policy.Mode.String())
}

// appendPolicy appends the members that name a policy and its version.
func appendPolicy(dst []byte, id string, version int) []byte {
	dst = append(dst, `"policy":`...)
	dst = appendString(dst, id)
	dst = append(dst, `,"version":`...)
	return strconv.AppendInt(dst, int64(version), 10)
}

// separate appends the comma that an array's next element needs behind another.
func separate(dst []byte) []byte {
	if dst[len(dst)-1] == '[' {
		return dst
	}
	return append(dst, ',')
}

// endOptional closes an array whose member begins at start, and takes the
// member back when it has no element.
func endOptional(dst []byte, start int) []byte {
	if dst[len(dst)-1] == '[' {
		return dst[:start]
	}
	return append(dst, ']')
}
