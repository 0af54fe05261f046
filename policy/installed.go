package policy

// Installed is one version of a policy as the store holds it. It is immutable.
type Installed struct {
	Number            int32 // the store's short name of the policy, never reused
	ID                string
	Version           int // from 1, never reused
	Spec              *Spec
	Mode              Mode  // in force: what Spec says, but Shadow while a kill switch makes an enforced policy one
	Deleted           bool  // a tombstone: the policy ended with this version, whose Spec is that of the version before
	InstalledAtMicros int64 // in force for every call that begins after this change's COMMIT

	// Overrides are the exceptions for single keys of this policy, by key; nil
	// where there are none.
	Overrides map[Key]Override
}

// FastPath says whether take_v1 can decide a request that only this policy
// matches; everything else is decide_v1's.
func (p *Installed) FastPath() bool {
	return p.Spec.Limit.Algorithm == TokenBucket && p.Mode == Enforce
}

// Check is one policy that a request has to pass, with the key and the cost
// under which it does.
type Check struct {
	Policy *Installed
	Key    Key
	Cost   int64 // tokens, 1 to CostMax
	Priced bool  // Cost is the request's own: a settlement replaces it
}

// CountLogs says how many of the checks are of sliding window logs: each is
// read and written whole, with up to 1,000 charges, so that they are bounded by
// themselves.
func CountLogs(checks []Check) (logs int) {
	for i := range checks {
		if checks[i].Policy.Spec.Limit.Algorithm == SlidingWindowLog {
			logs++
		}
	}
	return logs
}
