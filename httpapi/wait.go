package httpapi

import "github.com/rationhq/ration/policy"

// waitSeconds rounds a wait up to whole seconds, at least 1, and lengthens it
// by jitter, so that callers denied together do not return together. It never
// shortens, and keeps [policy.Never].
func (s *Site) waitSeconds(micros int64) int64 {
	if micros == policy.Never {
		return policy.Never
	}
	if s.Jitter > 0 {
		micros = addSaturated(micros, int64(float64(micros)*s.Jitter*s.Random()))
	}
	return max(1, ceilDiv(micros, microsPerSecond))
}

const (
	microsPerSecond = 1_000_000
	microsPerMilli  = 1_000
)

// ceilDiv is a/b rounded up, for a >= 0 and b > 0.
func ceilDiv(a, b int64) int64 {
	quotient := a / b
	if a%b > 0 {
		quotient++
	}
	return quotient
}

// addSaturated is a+b for a, b >= 0, or the largest int64.
func addSaturated(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return 1<<63 - 1
}
