package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Fifty callers at once on a key that no row stands for yet, through two
// instances: exactly the capacity is allowed.
func TestFreshKeysThroughTwoInstances(t *testing.T) {
	t.Parallel()
	const keys, callers, capacity = 200, 50, 10
	db := newDatabase(t)
	instances := [2]*instance{serve(t, db), serve(t, db)}
	instances[0].put(t, "fresh", slow("op", capacity, ""), 0)
	eventually(t, "both instances have the policy", func() bool {
		return instances[1].metric(t, `ration_policy_version{policy="fresh"}`) == "1"
	})
	for key := range keys {
		var allowed, denied atomic.Int32
		var asking sync.WaitGroup
		for caller := range callers {
			asking.Go(func() {
				a, err := instances[caller%2].ask(request("op", fmt.Sprint("key-", key)))
				switch {
				case err != nil:
					t.Error(err)
				case a.Status == http.StatusOK:
					allowed.Add(1)
				case a.Status == http.StatusTooManyRequests:
					denied.Add(1)
				default:
					t.Errorf("key %d: %d %s %s", key, a.Status, a.Type, a.Detail)
				}
			})
		}
		asking.Wait()
		if allowed.Load() != capacity || denied.Load() != callers-capacity {
			t.Fatalf("key %d: %d of %d callers are allowed and %d denied, the capacity is %d", key, allowed.Load(), callers, denied.Load(), capacity)
		}
	}
}

// While callers ask, a policy is lowered from 40 to 10. Under the new version
// no key is allowed more than 10, from the very first answer on.
func TestLoweredWhileAsked(t *testing.T) {
	t.Parallel()
	const keys, callers, after = 50, 4, 12
	db := newDatabase(t)
	instances := [2]*instance{serve(t, db), serve(t, db)}
	instances[0].put(t, "lowered", slow("op", 40, ""), 0)
	eventually(t, "both instances have the policy", func() bool {
		return instances[1].metric(t, `ration_policy_version{policy="lowered"}`) == "1"
	})
	for key := range keys { // their rows exist, and are full but for a token
		instances[key%2].mustAsk(t, request("op", fmt.Sprint("key-", key)))
	}
	changed := make(chan struct{})
	var allowed [keys]atomic.Int32 // under version 2
	var asking sync.WaitGroup
	for caller := range callers {
		asking.Go(func() {
			for round, left := 0, after; left > 0; round++ {
				select {
				case <-changed:
					left--
				default:
				}
				for key := range keys {
					a, err := instances[(caller+round)%2].ask(request("op", fmt.Sprint("key-", key)))
					if err != nil || a.Status != http.StatusOK && a.Status != http.StatusTooManyRequests {
						t.Errorf("key %d: %d %s %s (%v)", key, a.Status, a.Type, a.Detail, err)
						return
					}
					if left < after && a.PolicyVersion != 2 {
						t.Errorf("key %d: version %d after the answer that version 2 is in force", key, a.PolicyVersion)
					}
					if a.PolicyVersion == 2 && a.Allowed {
						allowed[key].Add(1)
					}
				}
			}
		})
	}
	instances[0].put(t, "lowered", slow("op", 10, ""), 1)
	close(changed)
	asking.Wait()
	total := int32(0)
	for key := range keys {
		total += allowed[key].Load()
		if allowed[key].Load() > 10 {
			t.Errorf("key %d is allowed %d under a capacity of 10", key, allowed[key].Load())
		}
	}
	if total == 0 {
		t.Error("nothing was allowed under the new version: nothing was tested")
	}
}

// Raised from 10 to 100, no key gains a token that it did not earn.
func TestRaisedGivesNothing(t *testing.T) {
	t.Parallel()
	i := serve(t, newDatabase(t))
	i.put(t, "raised", slow("op", 10, ""), 0)
	for range 4 {
		i.mustAsk(t, request("op", "spent"))
	}
	i.mustAsk(t, strings.TrimSuffix(request("op", "untouched"), "}")+`,"peek":true}`)
	i.put(t, "raised", slow("op", 100, ""), 1)
	for account, want := range map[string]int{"spent": 6, "untouched": 10, "unseen": 10} {
		allowed := 0
		for range 30 {
			if i.mustAsk(t, request("op", account)).Allowed {
				allowed++
			}
		}
		if allowed != want {
			t.Errorf("%s: %d are allowed after the raise, want %d", account, allowed, want)
		}
	}
}
