package policy

// Put is one operator's request to install a version of a policy.
type Put struct {
	ID        string
	Expected  int // the version it replaces; 0: the policy must not exist yet
	Change    *Change
	Actor     string // who asks, for the audit
	RequestID string // of the call that asked, for the audit
}

// Record is one version of a policy with what its audit row says of it.
type Record struct {
	*Installed
	Balances Balances // how balances were carried over into this version
	Actor    string   // who installed it
	Reason   string   // why, "" when not stated
}

// Result is the answer to one request of several: a decision, or the reason
// why there is none.
type Result struct {
	Decision Decision // meaningful when Err is nil
	Err      error
}
