package policy

// OverrideAction says what an override does for its key.
type OverrideAction uint8

// The actions.
const (
	OverrideLimit   OverrideAction = iota // another limit of the same kind
	OverrideExempt                        // the policy does not apply
	OverrideBlocked                       // the policy denies, whatever is left
)

var overrideActionNames = [...]string{"limit", "exempt", "blocked"}

// String gives the action's name in JSON and SQL.
func (a OverrideAction) String() string { return overrideActionNames[a] }

// ParseOverrideAction reads an action's name; ok is false for any other text.
func ParseOverrideAction(name string) (action OverrideAction, ok bool) {
	for action := range OverrideAction(len(overrideActionNames)) {
		if name == action.String() {
			return action, true
		}
	}
	return 0, false
}

// Override is the exception in force for one key of a policy.
type Override struct {
	Action OverrideAction

	// Of another limit: what stands in the policy's place, and the key there. It
	// has the policy's id, version and mode, and a number of its own.
	Limited *Installed
	Key     Key
}

// check makes the check that a policy asks of a key, or notes that the key is
// exempt or blocked.
func (m *Matched) check(check Check) {
	if check.Policy.Overrides != nil {
		if override, found := check.Policy.Overrides[check.Key]; found {
			switch override.Action {
			case OverrideExempt:
				m.Exempt = append(m.Exempt, check.Policy)
				return
			case OverrideBlocked:
				m.Blocked = append(m.Blocked, check.Policy)
				return
			case OverrideLimit:
				check.Policy, check.Key = override.Limited, override.Key
			}
		}
	}
	m.Checks = append(m.Checks, check)
}

// Denying is the first enforced policy that blocks the key, nil when none
// does.
func (m *Matched) Denying() *Installed {
	for _, policy := range m.Blocked {
		if policy.Mode == Enforce {
			return policy
		}
	}
	return nil
}

// Unchecked is the policy that answers for a request which nothing is asked of:
// the first that is disabled, else the first that exempts its key, else the
// first that blocks it. It is nil when there is none.
func (m *Matched) Unchecked() *Installed {
	switch {
	case m.Disabled != nil:
		return m.Disabled
	case len(m.Exempt) > 0:
		return m.Exempt[0]
	case len(m.Blocked) > 0:
		return m.Blocked[0]
	}
	return nil
}
