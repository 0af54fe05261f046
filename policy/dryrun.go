package policy

// DryRun is what a change would do, found without doing it.
type DryRun struct {
	Before    *Installed // the version in force that it would replace; nil: it would create the policy
	Unchanged bool       // the content is in force already: nothing would be installed
	Balances  DryBalances
	Restarts  []string // the members, as JSON Pointers, for which the state begins anew; balances restart is stated
}

// DryBalances counts what becomes of the balances that a policy's keys have
// now. Keys without a row are idle and are not counted.
type DryBalances struct {
	Live    int64 // stored
	Clamped int64 // of these, those that lose what the new capacity cannot hold
	Denied  int64 // of these, those that could pay for a call now, and could not after the change
	AtLeast bool  // the figures are lower bounds: counting stopped at its bound
}
