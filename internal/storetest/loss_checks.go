package storetest

import "github.com/rationhq/ration/policy"

// lossChecks are the guarantees of a crash of the store.
func lossChecks() []check {
	return []check{
		{"a crash takes what fast policies keep, but no slots", lossTakesFastState},
		{"after a crash nothing is left where the policy says so", lossLeavesNothing},
		{"what a crash took is not settled in what came after", lossIsNotSettled},
	}
}

// loses is a crash, and says which of some checks' policies forgot their keys.
func (s *scene) loses(at int64, checks []policy.Check) (forgets []bool) {
	s.Helper()
	if err := s.store.Lose(s.Context(), epochMicros+at); err != nil {
		s.Fatalf("lose the fast state: %v", err)
	}
	for _, check := range checks {
		forgets = append(forgets, s.durability == policy.Fast && check.Policy.Spec.Limit.Algorithm != policy.Concurrency)
	}
	return forgets
}

func lossTakesFastState(s *scene) {
	checks := s.onEach(10, 3)
	s.claim(0, checks...)
	forgets := s.loses(0, checks)
	for i, part := range s.peekAt(0, checks...).Parts {
		want := int64(7)
		if forgets[i] {
			want = 10
		}
		if part.Remaining != want {
			s.Errorf("policy %s: %d left, want %d", checks[i].Policy.ID, part.Remaining, want)
		}
	}
}

func lossIsNotSettled(s *scene) {
	checks := s.onEach(20, 4)
	s.operates(0, "before", checks...)
	forgets := s.loses(second, checks)
	s.operates(second, "after", checks...)
	for _, settled := range []struct {
		id     string
		actual int64
	}{{"before", 10}, {"after", 0}} {
		for i, part := range s.settle(second, settled.id, settled.actual, policy.SettleDone).Parts {
			counts := checks[i].Policy.Spec.Limit.Algorithm != policy.Concurrency && (settled.id == "after" || !forgets[i])
			if part.Applied != counts || part.Clamped {
				s.Errorf("policy %s, decided %s the loss: %+v, want applied %t", part.Policy, settled.id, part, counts)
			}
		}
	}
	for i, part := range s.peekAt(second, checks...).Parts {
		want := int64(10) // what came before it was settled to 10, what came after to nothing
		switch {
		case forgets[i]:
			want = 20
		case checks[i].Policy.Spec.Limit.Algorithm == policy.Concurrency:
			want = 12
		}
		if part.Remaining != want {
			s.Errorf("policy %s: %d left, want %d", checks[i].Policy.ID, part.Remaining, want)
		}
	}
}

// lossLeavesNothing: all of the limit is spent at the instant of the loss, but
// no bucket and no window goes back behind the installation of its policy.
func lossLeavesNothing(s *scene) {
	if s.durability == policy.Durable {
		return // loses nothing
	}
	for _, c := range []struct {
		id, limit    string
		behind, free int64 // one of 10 after a loss before the installation at 900 s, and after it
	}{
		{"bucket", bucketOf(10, "1", "10"), 810 * second, 10 * second},
		{"fixed", fixedWindow(10, "60"), 860 * second, 20 * second},
		{"counter", slidingCounter(10, "60"), 866 * second, 26 * second},
		{"log", slidingLog(10, "60"), 60 * second, 60 * second},
		{"strict", strictCounter(10, "60"), 61 * second, 61 * second},
	} {
		change := s.changeTo(policy.Enforce, c.limit)
		change.Spec.AfterLoss = policy.LossEmpty
		installed, err := s.store.Install(s.Context(), c.id, change, 0, epochMicros+900*second)
		if err != nil {
			s.Fatalf("install %s: %v", c.id, err)
		}
		s.policies[c.id] = installed
		s.reload()
		s.loses(100*second, nil)
		s.waits(100*second, c.id, "key", 1, 0, c.behind)
		s.loses(1000*second, nil)
		s.waits(1000*second, c.id, "key", 1, 0, c.free)
	}
}
