package policy

// Gateway is a caller of the decision listener, with whom and what it may
// speak for: every given field must match the request, as in a policy's
// [Match].
type Gateway struct {
	Name string // scopes the operation ids it gives, so that no other's can meet them

	Accounts, Operations, Regions Patterns
}
