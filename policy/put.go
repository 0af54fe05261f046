package policy

// Put is one operator's request to install a version of a policy.
type Put struct {
	ID        string
	Expected  int // the version it replaces; 0: the policy must not exist yet
	Change    *Change
	Actor     string // who asks, for the audit
	RequestID string // of the call that asked, for the audit
}
