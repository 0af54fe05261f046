package limiter_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/policy"
)

// told is one generation that somebody was told of.
type told struct {
	Generation int64
	Arrived    []int64
}

func TestGenerationsInForceAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		first := s.install(t, "op", 10, "")
		policies := &script{}
		policies.answers(7, first)
		heard := make(chan told, 10)
		r := startUnloaded(t, s, func(c *limiter.Config) {
			c.Policies = policies
			c.InForce = func(generation int64, arrived []int64) { heard <- told{generation, arrived} }
		})
		hears := func(what string, want ...told) {
			t.Helper()
			r.Refresh()
			synctest.Wait()
			var got []told
			for len(heard) > 0 {
				got = append(got, <-heard)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		at := func(id string, number int32, version int, installedAtMicros int64) *policy.Installed {
			installed := *first
			installed.ID, installed.Number, installed.Version, installed.InstalledAtMicros = id, number, version, installedAtMicros
			return &installed
		}
		hears("the first set, of whenever", told{7, nil})
		hears("the same again")
		policies.answers(9, at("op", first.Number, 2, 1000), at("new", first.Number+1, 1, 2000))
		hears("a new version and a new policy", told{9, []int64{1000, 2000}})
		policies.answers(10, at("op", first.Number, 2, 1000))
		hears("a change that is no version", told{10, nil})
		policies.answers(3, first)
		hears("a store that was restored", told{3, nil})
	})
}

// Who is told of a set asks under it.
func TestASetIsInForceWhenItIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		var second atomic.Pointer[running] // nil before the second set is there
		asked := make(chan policy.Decision, 1)
		r := startUnloaded(t, s, func(c *limiter.Config) {
			c.InForce = func(int64, []int64) {
				if r := second.Load(); r != nil {
					asked <- r.ask(request("op", "A", 1)).is(true, 9) // answered before the set's own goroutine goes on
				}
			}
		})
		synctest.Wait()
		second.Store(r)
		installed := s.install(t, "op", 10, "")
		r.Refresh()
		if d := <-asked; d.Policy != installed {
			t.Errorf("decided by %+v", d.Policy)
		}
	})
}
