package httpapi

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/rationhq/ration/policy"
)

// RFC 3339 in UTC: with milliseconds for what is foretold, with microseconds,
// the store's own precision, for what is an exact instant.
const (
	timeLayout    = "2006-01-02T15:04:05.000Z"
	instantLayout = "2006-01-02T15:04:05.000000Z"
)

// appendDecision appends the members of a decision's JSON, without the braces:
// the four that are always there first. waitSeconds is the wait with jitter,
// [policy.Never] when no wait helps. The gateway is told every figure, also
// those that are kept out of the headers it hands on. By hand, because every
// call passes here and reflection would be the dearest part of it.
func appendDecision(dst []byte, d *policy.Decision, waitSeconds int64) []byte {
	dst = append(dst, `"allowed":`...)
	dst = strconv.AppendBool(dst, d.Allowed)
	dst = append(dst, `,"remaining":`...)
	dst = strconv.AppendInt(dst, d.Remaining, 10)
	dst = append(dst, `,"retryAfterSeconds":`...)
	dst = appendWait(dst, waitSeconds)
	dst = append(dst, `,"policyVersion":`...)
	dst = strconv.AppendInt(dst, int64(d.Policy.Version), 10)

	dst = append(dst, `,"retryAfterMillis":`...)
	dst = appendWait(dst, waitMillis(d.RetryAfterMicros))
	dst = append(dst, `,"limit":`...)
	dst = strconv.AppendInt(dst, d.Policy.Spec.Limit.Capacity, 10)
	if resetAt := d.ResetAtMicros(); resetAt > 0 { // a decision without the store's clock has none
		dst = appendResetAt(dst, resetAt)
	}
	dst = append(dst, `,"policy":`...)
	dst = appendString(dst, d.Policy.ID)
	dst = append(dst, `,"outcome":`...)
	dst = appendString(dst, d.Outcome.String())
	dst = append(dst, `,"source":`...)
	dst = appendString(dst, d.Source.String())
	if mode := d.Policy.Mode; mode != policy.Enforce {
		dst = append(dst, `,"mode":`...)
		dst = appendString(dst, mode.String())
	}
	if d.Detail != nil {
		dst = appendDetail(dst, d)
	}
	return dst
}

// decisionWait is the wait of a decision in whole seconds with jitter: 0 when
// it is allowed.
func (s *Site) decisionWait(d *policy.Decision) int64 {
	if d.Allowed {
		return 0
	}
	return s.waitSeconds(d.RetryAfterMicros)
}

// waitMillis rounds an exact wait up to milliseconds and keeps [policy.Never].
func waitMillis(micros int64) int64 {
	if micros == policy.Never {
		return policy.Never
	}
	return ceilDiv(micros, microsPerMilli)
}

// appendWait appends a wait, null when it is [policy.Never].
func appendWait(dst []byte, wait int64) []byte {
	if wait == policy.Never {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, wait, 10)
}

// appendResetAt appends the member that says when all is there again, rounded
// up to milliseconds so that it is never too early.
func appendResetAt(dst []byte, micros int64) []byte {
	dst = append(dst, `,"resetAt":"`...)
	dst = time.UnixMilli(ceilDiv(micros, microsPerMilli)).UTC().AppendFormat(dst, timeLayout)
	return append(dst, '"')
}

// appendInstant appends an exact instant as a JSON string.
func appendInstant(dst []byte, micros int64) []byte {
	dst = append(dst, '"')
	dst = time.UnixMicro(micros).UTC().AppendFormat(dst, instantLayout)
	return append(dst, '"')
}

// appendString appends a JSON string. Names of policies and sources need no
// escaping; whatever does goes to encoding/json.
func appendString(dst []byte, s string) []byte {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) //nolint:errchkjson // a string always encodes
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
