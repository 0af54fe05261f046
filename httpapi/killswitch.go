package httpapi

import (
	"context"
	"net/http"

	"github.com/rationhq/ration/policy"
)

// KillSwitches make enforced policies shadows for a while. Errors are
// *policy.Error or the context's.
type KillSwitches interface {
	// ThrowKillSwitch throws one, or throws it anew; policies says how many
	// policies it keeps from denying.
	ThrowKillSwitch(ctx context.Context, throw policy.KillSwitchThrow) (lies *policy.KillSwitch, policies int, err error)

	// TakeBackKillSwitch takes one back; not-found where none lies over the prefix.
	TakeBackKillSwitch(ctx context.Context, taken policy.KillSwitchReturn) error

	// KillSwitches gives those that lie, ascending by prefix.
	KillSwitches(ctx context.Context) ([]*policy.KillSwitch, error)
}

// throwKillSwitch makes the enforced policies of a prefix shadows, and answers
// until when, and how many they are.
func (a *admin) throwKillSwitch(w http.ResponseWriter, r *http.Request) (int, error) {
	throw, err := readBody(r, policy.ParseKillSwitch)
	if err != nil {
		return 0, err
	}
	throw.Author = authorOf(r)
	lies, policies, err := a.killSwitches.ThrowKillSwitch(r.Context(), *throw)
	if err != nil {
		return 0, err
	}
	return a.writeValue(w, r, struct {
		killSwitch
		Policies int `json:"policies"` // that would be enforced
	}{killSwitchOf(lies), policies})
}

// takeBackKillSwitch has the policies of a prefix enforced again.
func (a *admin) takeBackKillSwitch(w http.ResponseWriter, r *http.Request) (int, error) {
	query, err := readQuery(r, "prefix", "reason")
	if err != nil {
		return 0, err
	}
	if !query.Has("prefix") || !policy.IsIDPrefix(query.Get("prefix")) {
		return 0, badRequest(`The query parameter "prefix" is required: what the switch was thrown for, empty for all policies.`)
	}
	reason, err := cutReason(query)
	if err != nil {
		return 0, err
	}
	taken := policy.KillSwitchReturn{Author: authorOf(r), Prefix: query.Get("prefix"), Reason: reason}
	if err := a.killSwitches.TakeBackKillSwitch(r.Context(), taken); err != nil {
		return 0, err
	}
	a.identify(w, r)
	w.WriteHeader(http.StatusNoContent)
	return http.StatusNoContent, nil
}

// listKillSwitches answers those that lie. There are a handful at most.
func (a *admin) listKillSwitches(w http.ResponseWriter, r *http.Request) (int, error) {
	if _, err := readQuery(r); err != nil {
		return 0, err
	}
	switches, err := a.killSwitches.KillSwitches(r.Context())
	if err != nil {
		return 0, err
	}
	page := struct {
		KillSwitches []killSwitch `json:"killSwitches"`
	}{make([]killSwitch, len(switches))}
	for i, lies := range switches {
		page.KillSwitches[i] = killSwitchOf(lies)
	}
	return a.writeValue(w, r, page)
}

// killSwitch is the JSON of a kill switch.
type killSwitch struct {
	Prefix    string `json:"prefix"` // "" lies over all policies
	Reason    string `json:"reason"`
	Actor     string `json:"actor"`
	CreatedAt string `json:"createdAt"`
	ExpiresAt string `json:"expiresAt"`
}

func killSwitchOf(lies *policy.KillSwitch) killSwitch {
	return killSwitch{
		Prefix: lies.Prefix, Reason: lies.Reason, Actor: lies.Actor,
		CreatedAt: instantText(lies.CreatedAtMicros), ExpiresAt: instantText(lies.ExpiresAtMicros),
	}
}
