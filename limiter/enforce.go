package limiter

import "github.com/rationhq/ration/policy"

// InForce is told that a generation of the policy set is in force in this
// instance: nothing that it answers any more is of an older one, but for calls
// that were under way. arrived are the instants, on the store's clock, at which
// the versions that are new here were installed; the first set has none.
//
// It is called from one goroutine, which it must not hold up: the next change
// waits for it.
type InForce func(generation int64, arrived []int64)

// enforce puts a set in force, and then says so.
func (f *follower) enforce(set *inForce, arrived []int64) {
	f.current.Store(set)
	// Here, between the two, goes whatever the instance has kept of answers under the older set: who waits for a change
	// that takes something away has to find it gone.
	f.tell(set.Generation(), arrived)
}

// arrivals are the instants at which those of the changed policies were
// installed whose version is not the one known here.
func (f *follower) arrivals(changed []*policy.Installed) (arrived []int64) {
	if f.known == 0 {
		return nil // all there is, since whenever
	}
	for _, installed := range changed {
		if known := f.installed[installed.Number]; known == nil || known.Version != installed.Version {
			arrived = append(arrived, installed.InstalledAtMicros)
		}
	}
	return arrived
}
