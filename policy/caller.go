package policy

import "strings"

// Role says what an operator may do on the admin listener. Each may what those
// before it may.
type Role uint8

// The roles, the least first.
const (
	NoRole   Role = iota // nothing
	Viewer               // reads policies, their history, balances and the audit
	Operator             // changes policies, overrides and balances
	Admin                // deletes policies and throws the kill switch
)

var roleNames = [...]string{"", "viewer", "operator", "admin"}

// String gives the role's name in tokens, configuration and the audit.
func (r Role) String() string { return roleNames[r] }

// ParseRole reads a role's name; ok is false for any other text.
func ParseRole(name string) (role Role, ok bool) {
	for role := Viewer; role <= Admin; role++ {
		if name == role.String() {
			return role, true
		}
	}
	return NoRole, false
}

// ValidCallerName says whether name can be an operator's or a gateway's:
// [A-Za-z0-9][A-Za-z0-9._@-]{0,63}.
func ValidCallerName(name string) bool {
	return isPolicyID(strings.ReplaceAll(name, "@", "-"))
}

// Author is who makes a change, for the audit.
type Author struct {
	Actor     string // the operator's name
	Role      Role   // NoRole where the program itself makes it
	RequestID string // of the call that asked
}

// Caller is whom a request to a listener comes from.
type Caller struct {
	Name    string
	Role    Role     // of an operator, NoRole of a gateway
	Gateway *Gateway // nil: it is none
}
