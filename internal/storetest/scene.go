package storetest

import (
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/rationhq/ration/policy"
)

// Units of the scenes' clock, in microseconds.
const (
	millisecond = int64(1_000)
	second      = 1_000 * millisecond
	day         = 86_400 * second
	year        = 365 * day
)

// epochMicros is the instant 0 of every scene and history, in 2024: an
// ordinary reading of a database's clock.
const epochMicros = int64(1_704_067_200_000_000)

// scene is a store with policies in it, seen by a test that asks. Instants are
// microseconds from the scene's beginning.
type scene struct {
	testing.TB

	store      Store
	another    func() Store // makes a second, empty store
	durability policy.Durability
	policy     *policy.Installed            // the one of install, nil before the first version
	policies   map[string]*policy.Installed // the current versions, by id
	generation int64
}

func newScene(tb testing.TB, newStore func(testing.TB) Store, durability policy.Durability) *scene {
	tb.Helper()
	return &scene{
		TB: tb, store: newStore(tb), another: func() Store { return newStore(tb) }, durability: durability,
		policies: map[string]*policy.Installed{},
	}
}

// install makes the next version of the scene's policy: a token bucket of
// capacity tokens that earns refillTokens each refillSeconds (JSON numbers).
func (s *scene) install(at, capacity int64, refillTokens, refillSeconds string) *policy.Installed {
	s.Helper()
	s.policy = s.put(at, "scene", bucketOf(capacity, refillTokens, refillSeconds))
	return s.policy
}

// put makes the next version of any policy. limit is JSON.
func (s *scene) put(at int64, id, limit string) *policy.Installed {
	s.Helper()
	return s.putMode(at, id, policy.Enforce, limit)
}

// putMode makes the next version of a policy in a mode.
func (s *scene) putMode(at int64, id string, mode policy.Mode, limit string) *policy.Installed {
	s.Helper()
	return s.putChange(at, id, s.changeTo(mode, limit))
}

// putBy makes the next version of a policy by a rule for what it keeps.
func (s *scene) putBy(at int64, id string, rule policy.Balances, start policy.Start, limit string) *policy.Installed {
	s.Helper()
	return s.putChange(at, id, s.changeBy(rule, start, limit))
}

func (s *scene) putChange(at int64, id string, change *policy.Change) *policy.Installed {
	s.Helper()
	installed, err := s.store.Install(s.Context(), id, change, s.version(id), epochMicros+at)
	if err != nil {
		s.Fatalf("install another version than %d of %s: %v", s.version(id), id, err)
	}
	s.policies[id] = installed
	s.reload()
	return installed
}

// version is the one in force of a policy, 0 when there is none.
func (s *scene) version(id string) int {
	if current := s.policies[id]; current != nil {
		return current.Version
	}
	return 0
}

// delete ends a policy.
func (s *scene) delete(at int64, id string) {
	s.Helper()
	if err := s.store.Delete(s.Context(), id, s.version(id), epochMicros+at); err != nil {
		s.Fatalf("delete version %d of %s: %v", s.version(id), id, err)
	}
	delete(s.policies, id)
	s.reload()
}

// change is the content of a version of the scene's policy.
func (s *scene) change(capacity int64, refillTokens, refillSeconds string) *policy.Change {
	s.Helper()
	return s.changeTo(policy.Enforce, bucketOf(capacity, refillTokens, refillSeconds))
}

func (s *scene) changeTo(mode policy.Mode, limit string) *policy.Change {
	s.Helper()
	change, err := changeTo(s.durability, mode, limit)
	if err != nil {
		s.Fatalf("policy of limit %s: %v", limit, err)
	}
	return change
}

// changeBy is a change by a rule for what the policy keeps.
func (s *scene) changeBy(rule policy.Balances, start policy.Start, limit string) *policy.Change {
	s.Helper()
	change := s.changeTo(policy.Enforce, limit)
	change.Balances, change.Start = rule, start
	return change
}

// reload takes over the store's generation.
func (s *scene) reload() {
	s.Helper()
	generation, err := s.store.Generation(s.Context())
	if err != nil {
		s.Fatalf("read the generation: %v", err)
	}
	s.generation = generation
}

// ask lets count callers of a key ask for cost tokens each.
func (s *scene) ask(at int64, key string, count int32, cost int64) policy.Answer {
	s.Helper()
	ask := policy.Ask{Key: keyOf("scene", key), Policy: s.policy.Number, Count: count, Cost: cost}
	answers := s.decide(&policy.Batch{
		Durability: s.durability, Generation: s.generation,
		NowMicros: epochMicros + at, Asks: []policy.Ask{ask},
	})
	if answers.Stale || len(answers.Asks) != 1 || answers.Asks[0].Status != policy.Answered {
		s.Fatalf("at %d µs: no answer: %+v", at, answers)
	}
	if answers.NowMicros != epochMicros+at {
		s.Fatalf("at %d µs: answered at %d µs", at, answers.NowMicros-epochMicros)
	}
	return answers.Asks[0]
}

// decide sends a batch.
func (s *scene) decide(batch *policy.Batch) policy.Answers {
	s.Helper()
	var answers policy.Answers
	if err := s.store.Decide(s.Context(), batch, &answers); err != nil {
		s.Fatalf("decide at %d µs: %v", batch.NowMicros-epochMicros, err)
	}
	return answers
}

// peek asks what a call of cost 1 would get.
func (s *scene) peek(at int64, key string) policy.Answer {
	s.Helper()
	return s.ask(at, key, 0, 1)
}

// allow asks once and expects to be admitted with remaining tokens left.
func (s *scene) allow(at int64, key string, cost, remaining int64) {
	s.Helper()
	got := s.ask(at, key, 1, cost)
	if got.Admitted != 1 || got.Remaining != remaining {
		s.Errorf("at %d µs, cost %d: %+v, want admitted with %d remaining", at, cost, got, remaining)
	}
}

// deny asks once and expects to be told to wait, or [policy.Never].
func (s *scene) deny(at int64, key string, cost, remaining, retryAfterMicros int64) {
	s.Helper()
	got := s.ask(at, key, 1, cost)
	if got.Admitted != 0 || got.Remaining != remaining || got.RetryAfterMicros != retryAfterMicros {
		s.Errorf("at %d µs, cost %d: %+v, want denied with %d remaining, retry after %d µs",
			at, cost, got, remaining, retryAfterMicros)
	}
}

// holds expects a key to have remaining whole tokens.
func (s *scene) holds(at int64, key string, remaining int64) {
	s.Helper()
	if got := s.peek(at, key); got.Remaining != remaining {
		s.Errorf("at %d µs: %q holds %d tokens, want %d", at, key, got.Remaining, remaining)
	}
}

// spend takes tokens one by one and expects to get them all.
func (s *scene) spend(at int64, key string, tokens int32) {
	s.Helper()
	if got := s.ask(at, key, tokens, 1); got.Admitted != tokens {
		s.Fatalf("at %d µs: %d of %d tokens admitted", at, got.Admitted, tokens)
	}
}

// clean lets the store delete what it may.
func (s *scene) clean(at int64) int {
	s.Helper()
	deleted, err := s.store.Clean(s.Context(), epochMicros+at)
	if err != nil {
		s.Fatalf("clean at %d µs: %v", at, err)
	}
	return deleted
}

// keyOf names a bucket. Stores take any 128 bits; what makes the real ones is
// the policy package's own business.
func keyOf(policyID, name string) policy.Key {
	digest := sha256.Sum256([]byte(policyID + "/" + name))
	return policy.Key(digest[:len(policy.Key{})])
}

// isConflict says whether an error is the one of a wrong expected version.
func isConflict(err error) bool {
	var e *policy.Error
	return errors.As(err, &e) &&
		e.Code == policy.CodeConflict && e.Reason == policy.ReasonVersionConflict
}
