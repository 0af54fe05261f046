package policy

// Installed is one version of a policy as the store holds it. It is immutable.
type Installed struct {
	Number            int32 // the store's short name of the policy, never reused
	ID                string
	Version           int // from 1, never reused
	Spec              *Spec
	InstalledAtMicros int64 // in force for every call that begins after this change's COMMIT
}

// Check is one policy that a request has to pass, with the key and the cost
// under which it does.
type Check struct {
	Policy *Installed
	Key    Key
	Cost   int64 // tokens, 1 to CostMax
	Priced bool  // Cost is the request's own: a settlement replaces it
}
