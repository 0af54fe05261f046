package policy

// Put is one operator's request to install a version of a policy.
type Put struct {
	Author

	ID       string
	Expected int // the version it replaces; 0: the policy must not exist yet
	Change   *Change
}

// Removal is one operator's request to delete a policy. Its versions stay, and
// their numbers are never used again.
type Removal struct {
	Author

	ID       string
	Expected int    // the version in force
	Reason   string // for the audit, at most 1,000 bytes
}
