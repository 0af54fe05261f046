package storetest

import (
	"github.com/rationhq/ration/policy"
)

// on is a check of a scene's policy by the cost of the request.
func (s *scene) on(id, key string, cost int64) policy.Check {
	return policy.Check{Policy: s.policies[id], Key: keyOf(id, key), Cost: cost, Priced: true}
}

// claims sends a call.
func (s *scene) claims(at int64, claims ...policy.Claim) []policy.Verdict {
	s.Helper()
	call := policy.Claims{
		Generation: s.generation, NowMicros: epochMicros + at, RetentionMicros: retentionMicros, Claims: claims,
	}
	var verdicts policy.Verdicts
	if err := s.store.DecideClaims(s.Context(), &call, &verdicts); err != nil {
		s.Fatalf("claim at %d µs: %v", at, err)
	}
	if verdicts.Stale || len(verdicts.Verdicts) != len(claims) || verdicts.NowMicros != epochMicros+at {
		s.Fatalf("at %d µs: no verdicts on %d claims: %+v", at, len(claims), verdicts)
	}
	return verdicts.Verdicts
}

// claim asks for what passes all checks, without an operation id.
func (s *scene) claim(at int64, checks ...policy.Check) policy.Verdict {
	s.Helper()
	return s.verdict(at, policy.ClaimDecided, policy.Claim{Checks: checks})
}

// peekAt asks what a claim would get.
func (s *scene) peekAt(at int64, checks ...policy.Check) policy.Verdict {
	s.Helper()
	return s.verdict(at, policy.ClaimDecided, policy.Claim{Peek: true, Checks: checks})
}

// verdict sends one claim and expects its status.
func (s *scene) verdict(at int64, want policy.ClaimStatus, claim policy.Claim) policy.Verdict {
	s.Helper()
	got := s.claims(at, claim)[0]
	if got.Status != want {
		s.Fatalf("at %d µs: status %d, want %d: %+v", at, got.Status, want, got)
	}
	if want == policy.ClaimDecided && len(got.Parts) != len(claim.Checks) {
		s.Fatalf("at %d µs: %d parts of %d checks: %+v", at, len(got.Parts), len(claim.Checks), got)
	}
	return got
}

// passes claims at one policy and expects to be allowed, with so much left.
func (s *scene) passes(at int64, id, key string, cost, remaining int64) policy.Part {
	s.Helper()
	got := s.claim(at, s.on(id, key, cost))
	if !got.Allowed || got.Parts[0].Remaining != remaining {
		s.Errorf("at %d µs, cost %d of %s: %+v, want allowed with %d remaining", at, cost, id, got, remaining)
	}
	return got.Parts[0]
}

// waits claims at one policy and expects to be denied and told to wait.
func (s *scene) waits(at int64, id, key string, cost, remaining, retryAfterMicros int64) {
	s.Helper()
	got := s.claim(at, s.on(id, key, cost))
	if got.Allowed || got.Parts[0].Remaining != remaining || got.Parts[0].RetryAfterMicros != retryAfterMicros {
		s.Errorf("at %d µs, cost %d of %s: %+v, want denied with %d remaining, retry after %d µs",
			at, cost, id, got, remaining, retryAfterMicros)
	}
}

// shows expects a key to have so much left, and to be free after a time.
func (s *scene) shows(at int64, id, key string, remaining, resetAfterMicros int64) {
	s.Helper()
	if got := s.peekAt(at, s.on(id, key, 1)).Parts[0]; got.Remaining != remaining || got.ResetAfterMicros != resetAfterMicros {
		s.Errorf("at %d µs: %q of %s shows %+v, want %d remaining and free after %d µs", at, key, id, got, remaining, resetAfterMicros)
	}
}

// left expects a key to have so much left.
func (s *scene) left(at int64, id, key string, remaining int64) {
	s.Helper()
	if got := s.peekAt(at, s.on(id, key, 1)).Parts[0]; got.Remaining != remaining {
		s.Errorf("at %d µs: %q of %s shows %+v, want %d remaining", at, key, id, got, remaining)
	}
}

// admittedTogether asks so many times for one of each key in one call and
// counts.
func (s *scene) admittedTogether(at int64, id string, times int, keys ...string) (allowed int) {
	s.Helper()
	var claims []policy.Claim
	for _, key := range keys {
		for range times {
			claims = append(claims, policy.Claim{Checks: []policy.Check{s.on(id, key, 1)}})
		}
	}
	for _, verdict := range s.claims(at, claims...) {
		if verdict.Allowed {
			allowed++
		}
	}
	return allowed
}
