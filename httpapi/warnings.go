package httpapi

import "github.com/rationhq/ration/policy"

// warningMember is one warning as it is shown.
type warningMember struct {
	Name    policy.WarningName `json:"name"`
	Pointer string             `json:"pointer"`
	Detail  string             `json:"detail"`
}

func warningMembers(warnings []policy.Warning) []warningMember {
	shown := make([]warningMember, len(warnings))
	for i, warning := range warnings {
		shown[i] = warningMember{Name: warning.Name, Pointer: fragment(warning.Pointer), Detail: warning.Detail}
	}
	return shown
}
