package httpapi

import (
	"strconv"

	"github.com/rationhq/ration/policy"
)

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
	if !showsFigures(d.Policy.Spec) {
		return
	}
	f.addRateLimit(d, waitSeconds)
	if reset != ResetOff {
		f.addLegacy(d, reset)
	}
}

// showsFigures says whether a policy's figures may stand in headers, which
// gateways hand on to clients. A key that holds none of the caller's own
// identities counts other people's calls too, and nobody reads another's
// usage. A disabled policy has no figures.
func showsFigures(spec *policy.Spec) bool {
	if spec.Mode == policy.Disabled {
		return false
	}
	if spec.Disclose {
		return true
	}
	for _, attribute := range spec.Per {
		switch attribute {
		case policy.Account, policy.User, policy.APIKey, policy.OAuthToken, policy.IP:
			return true
		case policy.TargetAccount, policy.Plan, policy.Region, policy.Operation: // not the caller's own
		}
	}
	return false
}

// addRateLimit adds the fields of draft-ietf-httpapi-ratelimit-headers-10.
func (f *fields) addRateLimit(d *policy.Decision, waitSeconds int64) {
	limit := &d.Policy.Spec.Limit
	f.text = appendStructuredString(f.text, d.Policy.ID)
	f.text = append(f.text, ";q="...)
	f.text = appendStructuredInteger(f.text, limit.Capacity)
	if window := windowSeconds(limit); window > 0 {
		f.text = append(f.text, ";w="...)
		f.text = appendStructuredInteger(f.text, window)
	}
	f.end("Ratelimit-Policy")

	f.text = appendStructuredString(f.text, d.Policy.ID)
	f.text = append(f.text, ";r="...)
	f.text = appendStructuredInteger(f.text, d.Remaining)
	if d.Remaining < limit.Capacity {
		next := ceilDiv(nextTokenMicros(d), microsPerSecond)
		if !d.Allowed && waitSeconds != policy.Never {
			next = min(next, waitSeconds) // one token never takes longer than the cost denied
		}
		f.text = append(f.text, ";t="...)
		f.text = appendStructuredInteger(f.text, next)
	}
	f.end("Ratelimit")
}

// addLegacy adds the X-RateLimit fields of GitHub's and Envoy's families.
func (f *fields) addLegacy(d *policy.Decision, reset ResetHeader) {
	f.text = strconv.AppendInt(f.text, d.Policy.Spec.Limit.Capacity, 10)
	f.end("X-Ratelimit-Limit")
	f.text = strconv.AppendInt(f.text, d.Remaining, 10)
	f.end("X-Ratelimit-Remaining")
	micros := d.ResetAfterMicros
	if reset == ResetEpoch {
		micros = d.ResetAtMicros
	}
	f.text = strconv.AppendInt(f.text, ceilDiv(max(0, micros), microsPerSecond), 10)
	f.end("X-Ratelimit-Reset")
}

// windowSeconds is the time in which an empty bucket fills, to the nearest
// second; 0 when that is under one, which the draft cannot say.
func windowSeconds(limit *policy.Limit) int64 {
	micros := tokensMicros(limit, limit.Capacity)
	if micros < microsPerSecond {
		return 0
	}
	return (micros + microsPerSecond/2) / microsPerSecond
}

// nextTokenMicros is the wait until one more whole token is there. The bucket
// is full after ResetAfterMicros, and one token stands at remaining+1; the
// tokens between take a known time. Rounding that down never promises early.
func nextTokenMicros(d *policy.Decision) int64 {
	limit := &d.Policy.Spec.Limit
	return max(0, d.ResetAfterMicros-tokensMicros(limit, limit.Capacity-d.Remaining-1))
}

// tokensMicros is the time in which the limit refills tokens, 0 to its
// capacity, rounded down. A policy's Capacity*D is below 2^62, so nothing
// overflows.
func tokensMicros(limit *policy.Limit, tokens int64) int64 {
	return tokens * limit.Rate.D / limit.Rate.N
}
