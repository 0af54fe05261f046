package storetest

import "github.com/rationhq/ration/policy"

// lossChecks are the guarantees of a crash of the store.
func lossChecks() []check {
	return []check{{"a crash takes what fast policies keep, but no slots", lossTakesFastState}}
}

func lossTakesFastState(s *scene) {
	checks := s.onEach(10, 3)
	s.claim(0, checks...)
	if err := s.store.Lose(s.Context(), epochMicros); err != nil {
		s.Fatalf("lose the fast state: %v", err)
	}
	for i, part := range s.peekAt(0, checks...).Parts {
		want := int64(7)
		if s.durability == policy.Fast && checks[i].Policy.Spec.Limit.Algorithm != policy.Concurrency {
			want = 10
		}
		if part.Remaining != want {
			s.Errorf("policy %s: %d left, want %d", checks[i].Policy.ID, part.Remaining, want)
		}
	}
}
