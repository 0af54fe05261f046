package httpapi

import (
	"strconv"

	"github.com/rationhq/ration/policy"
)

// quotasMax bounds the policies in RateLimit-Policy: gateways have little room
// for headers.
const quotasMax = 8

// ResetHeader says what X-RateLimit-Reset holds, if the X-RateLimit fields
// are sent at all. Gateways and clients disagree on it, so operators choose.
type ResetHeader uint8

// The forms of X-RateLimit-Reset: when the key is full again.
const (
	ResetDelta ResetHeader = iota // seconds from now
	ResetEpoch                    // seconds since 1970
	ResetOff                      // no X-RateLimit fields
)

// ParseResetHeader finds a form by its name: delta, epoch or off.
func ParseResetHeader(name string) (ResetHeader, bool) {
	for i, known := range [...]string{"delta", "epoch", "off"} {
		if name == known {
			return ResetHeader(i), true
		}
	}
	return 0, false
}

// addDecisionFields adds the header fields of a decision. waitSeconds is its
// wait with jitter, [policy.Never] when no wait helps.
func (f *fields) addDecisionFields(d *policy.Decision, reset ResetHeader, waitSeconds int64) {
	f.add("Content-Type", "application/json")
	f.add("Cache-Control", "no-store")
	if !d.Allowed && waitSeconds != policy.Never {
		f.text = strconv.AppendInt(f.text, waitSeconds, 10)
		f.end("Retry-After")
	}
	shown, ok := shownPart(d)
	if !ok {
		return
	}
	f.addRateLimitPolicy(d, &shown)
	f.addRateLimit(&shown, waitSeconds)
	if reset != ResetOff {
		f.addLegacy(d, &shown, reset)
	}
}

// shownPart gives the part of a decision whose figures stand in headers: the
// tightest policy's where those may, else of the others the one with the
// fewest tokens left. What policies decide by themselves counted nothing.
func shownPart(d *policy.Decision) (shown policy.DecisionPart, ok bool) {
	if d.Source == policy.FromPolicy {
		return policy.DecisionPart{}, false
	}
	if inHeaders(d.Policy) {
		return policy.DecisionPart{
			Policy: d.Policy, Allowed: d.Allowed, Remaining: d.Remaining,
			RetryAfterMicros: d.RetryAfterMicros, ResetAfterMicros: d.ResetAfterMicros,
		}, true
	}
	if d.Detail == nil {
		return policy.DecisionPart{}, false
	}
	for _, part := range d.Detail.Parts {
		if inHeaders(part.Policy) && (!ok || part.Remaining < shown.Remaining) {
			shown, ok = part, true
		}
	}
	return shown, ok
}

// inHeaders says whether a policy's figures may stand in headers, which
// gateways hand on to clients: they heed a limit only where it holds.
func inHeaders(installed *policy.Installed) bool {
	return installed.Mode == policy.Enforce && installed.Spec.ShowsFigures()
}

// addRateLimitPolicy adds the policies of a decision that may stand in
// headers, as draft-ietf-httpapi-ratelimit-headers-10 writes them: first the
// one whose figures are shown.
func (f *fields) addRateLimitPolicy(d *policy.Decision, shown *policy.DecisionPart) {
	f.text = appendQuota(f.text, shown.Policy)
	if d.Detail != nil {
		listed := 1
		for i := range d.Detail.Parts {
			if other := d.Detail.Parts[i].Policy; other.ID != shown.Policy.ID && inHeaders(other) && listed < quotasMax {
				f.text = appendQuota(append(f.text, ", "...), other)
				listed++
			}
		}
	}
	f.end("Ratelimit-Policy")
}

// appendQuota appends a policy's item: its name, quota and window.
func appendQuota(dst []byte, installed *policy.Installed) []byte {
	limit := &installed.Spec.Limit
	dst = appendStructuredString(dst, installed.ID)
	dst = append(dst, ";q="...)
	dst = appendStructuredInteger(dst, limit.Capacity)
	if window := windowSeconds(limit); window > 0 {
		dst = append(dst, ";w="...)
		dst = appendStructuredInteger(dst, window)
	}
	return dst
}

// addRateLimit adds what one policy has left, as the same draft writes it,
// which wants no time there that is later than Retry-After.
func (f *fields) addRateLimit(shown *policy.DecisionPart, waitSeconds int64) {
	f.text = appendStructuredString(f.text, shown.Policy.ID)
	f.text = append(f.text, ";r="...)
	f.text = appendStructuredInteger(f.text, shown.Remaining)
	if shown.Remaining < shown.Policy.Spec.Limit.Capacity {
		next := ceilDiv(nextMicros(shown), microsPerSecond)
		if waitSeconds <= 0 || next <= waitSeconds {
			f.text = append(f.text, ";t="...)
			f.text = appendStructuredInteger(f.text, next)
		}
	}
	f.end("Ratelimit")
}

// addLegacy adds the X-RateLimit fields of GitHub's and Envoy's families.
func (f *fields) addLegacy(d *policy.Decision, shown *policy.DecisionPart, reset ResetHeader) {
	f.text = strconv.AppendInt(f.text, shown.Policy.Spec.Limit.Capacity, 10)
	f.end("X-Ratelimit-Limit")
	f.text = strconv.AppendInt(f.text, shown.Remaining, 10)
	f.end("X-Ratelimit-Remaining")
	micros := shown.ResetAfterMicros
	if reset == ResetEpoch {
		micros = policy.InstantAfter(d.AtMicros, micros)
	}
	f.text = strconv.AppendInt(f.text, ceilDiv(micros, microsPerSecond), 10)
	f.end("X-Ratelimit-Reset")
}
