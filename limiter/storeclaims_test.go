package limiter_test

import (
	"context"
	"errors"
	"slices"

	"github.com/rationhq/ration/policy"
)

// The ways to the general path, as a sent call names them.
const (
	decideTry   = "decide try"
	decideWait  = "decide wait"
	decideSkip  = "decide skip"
	decideAlone = "decide alone"
)

// makes lets further claims become something else than decided.
func (s *store) makes(becomes func(sentCall, *policy.Claim) policy.ClaimStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.becomes = becomes
}

// Decide notes a call and answers from memory what is left to be decided.
func (c *session) Decide(ctx context.Context, hold policy.Hold, claims *policy.Claims, verdicts *policy.Verdicts) error {
	s := c.store
	sent := sentCall{function: "decide " + hold.String(), claims: *claims}
	sent.claims.Claims = slices.Clone(claims.Claims)
	s.mu.Lock()
	becomes := s.becomes
	s.mu.Unlock()
	if err := s.meet(sent); err != nil {
		return err
	}
	decided := sent.claims
	decided.NowMicros = s.nowMicros()
	decided.Claims = nil
	verdicts.Verdicts = verdicts.Verdicts[:0]
	for i := range sent.claims.Claims {
		status := becomes(sent, &sent.claims.Claims[i])
		verdicts.Verdicts = append(verdicts.Verdicts, policy.Verdict{Status: status})
		if status == policy.ClaimDecided {
			decided.Claims = append(decided.Claims, sent.claims.Claims[i])
		}
	}
	var inMemory policy.Verdicts
	if err := s.DecideClaims(ctx, &decided, &inMemory); err != nil {
		return fault(policy.StoreFaulty)
	}
	verdicts.Stale, verdicts.NowMicros = inMemory.Stale, inMemory.NowMicros
	for i := range verdicts.Verdicts {
		if verdicts.Verdicts[i].Status == policy.ClaimDecided && !inMemory.Stale {
			verdicts.Verdicts[i], inMemory.Verdicts = inMemory.Verdicts[0], inMemory.Verdicts[1:]
		}
	}
	return nil
}

// Installed is the limiter's view of versions that are not in force.
func (s *store) Installed(context.Context, []policy.Part) (policy.Find, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finds++
	versions := slices.Clone(s.versions)
	return func(number int32, version int) (*policy.Installed, error) {
		for _, installed := range versions {
			if installed.Number == number && installed.Version == version {
				return installed, nil
			}
		}
		return nil, &policy.Error{Code: policy.CodeNotFound, Reason: policy.ReasonNotFound}
	}, nil
}

// found counts how often versions were asked for since the last time.
func (s *store) found() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	finds := s.finds
	s.finds = 0
	return finds
}

// Installed of a script knows no other versions than those it loads.
func (*script) Installed(context.Context, []policy.Part) (policy.Find, error) {
	return nil, errors.New("the script has no old versions")
}
