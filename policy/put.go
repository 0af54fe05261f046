package policy

// Put is one operator's request to install a version of a policy.
type Put struct {
	Author

	ID       string
	Expected int // the version it replaces; 0: the policy must not exist yet
	Change   *Change
}
