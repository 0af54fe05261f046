package pgstore_test

import (
	"testing"

	"github.com/rationhq/ration/policy"
)

// Another limit begins with what the key's bucket holds and gives it back: a
// raise gives nothing that was not earned, a reduction clamps.
func TestAnotherLimitKeepsWhatWasEarned(t *testing.T) {
	t.Parallel()
	for _, durability := range []policy.Durability{policy.Fast, policy.Durable} {
		t.Run(durability.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := shape{capacity: 10, tokens: "1", seconds: "10", durability: durability}
			b.install("p", 0, s, 0)
			b.spend("A", 7, second)
			has := func(what string, account string, atMicros, want int64) {
				t.Helper()
				if got := b.left(account, atMicros); got != want {
					t.Errorf("%s: %s has %d left, want %d", what, account, got, want)
				}
			}
			b.override("p", "A", b.limitOf(s, 100), second)
			has("raised", "A", second, 3)
			has("raised", "B", second, 10)
			has("earned at the override's rate", "A", 301*second, 33)
			if !b.spend("A", 30, 301*second) || b.spend("A", 4, 301*second) {
				t.Error("what the override holds is not what it gives")
			}
			b.override("p", "A", b.limitOf(shape{tokens: "1", seconds: "3"}, 1000), 301*second)
			has("raised again, in other units", "A", 301*second, 3)
			has("raised again, in other units", "A", 331*second, 13)
			if err := b.removeOverride("p", "A", 331*second); err != nil {
				t.Fatal(err)
			}
			has("removed", "A", 331*second, 10)
			b.override("p", "A", b.limitOf(s, 2), 331*second)
			has("lowered", "A", 331*second, 2)
			b.override("p", "A", `{"action": "exempt", "reason": "why"}`, 331*second)
			if matched := b.matchedBy("A"); len(matched.Checks) != 0 || len(matched.Exempt) != 1 {
				t.Errorf("exempt: matched %+v", matched)
			}
			b.override("p", "A", `{"action": "blocked", "reason": "why"}`, 331*second)
			if denying := b.matchedBy("A").Denying(); denying == nil || denying.ID != "p" {
				t.Errorf("blocked: denied by %v", denying)
			}
			if err := b.removeOverride("p", "A", 331*second); err != nil {
				t.Fatal(err)
			}
			has("as it was after the lower limit", "A", 331*second, 2)
			has("never overridden", "B", 331*second, 10)
		})
	}
}

// A clock that was set back earns nothing until it is where it was, and no
// override makes it earn that time twice.
func TestOverridesEarnNothingBehindTheClock(t *testing.T) {
	t.Parallel()
	for _, durability := range []policy.Durability{policy.Fast, policy.Durable} {
		t.Run(durability.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := shape{capacity: 100, tokens: "1", seconds: "1", durability: durability}
			b.install("p", 0, s, 0)
			b.spend("A", 100, 100*second)
			// The clock goes back by 100 s.
			has := func(what string, atMicros, want int64) {
				t.Helper()
				if got := b.left("A", atMicros); got != want {
					t.Errorf("%s, at %d s: %d left, want %d", what, atMicros/second, got, want)
				}
			}
			b.override("p", "A", b.limitOf(s, 200), 0)
			has("overridden", 50*second, 0)
			has("overridden", 110*second, 10)
			b.override("p", "A", b.limitOf(s, 300), 0)
			has("overridden again", 50*second, 0)
			has("overridden again", 110*second, 10)
			if err := b.removeOverride("p", "A", 0); err != nil {
				t.Fatal(err)
			}
			has("as it was", 50*second, 0)
			has("as it was", 110*second, 10)
		})
	}
}

// Windows, logs and slots of another limit begin with nothing used, and do not
// touch what the key has used before.
func TestAnotherLimitOfOtherAlgorithmsBeginsFull(t *testing.T) {
	t.Parallel()
	for name, s := range algorithms(10) {
		if s.algorithm == policy.TokenBucket {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.install("p", 0, s, 0)
			b.spend("A", 7, second)
			b.override("p", "A", b.limitOf(s, 20), second)
			if got := b.left("A", second); got != 20 {
				t.Errorf("the other limit has %d left", got)
			}
			if !b.spend("A", 19, second) || b.spend("A", 2, second) {
				t.Error("the other limit gives another sum than its own")
			}
			if err := b.removeOverride("p", "A", second); err != nil {
				t.Fatal(err)
			}
			if got := b.left("A", second); got != 3 {
				t.Errorf("the policy's own has %d left", got)
			}
		})
	}
}
