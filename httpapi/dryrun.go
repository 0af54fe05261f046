package httpapi

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/rationhq/ration/policy"
)

// dryRun is the query parameter by which a change is tried and not made.
const dryRun = "dryRun"

// readDryRun says whether a change is only to be tried. Nobody waits for the
// installation of what is not installed.
func readDryRun(query url.Values) (bool, error) {
	switch value := query.Get(dryRun); {
	case !query.Has(dryRun) || value == "false":
		return false, nil
	case value != "true":
		return false, badRequest(`The query parameter "dryRun" must be true or false.`)
	case query.Has(waitForInstall):
		return false, badRequest(`The query parameter "waitForInstall" has no meaning with dryRun: nothing is installed.`)
	}
	return true, nil
}

// dryRunAnswer is the JSON of what a change would do.
type dryRunAnswer struct {
	DryRun    bool            `json:"dryRun"` // true
	ID        string          `json:"id"`
	Replaces  int             `json:"replaces,omitempty"`  // the version in force, absent where there is none
	Unchanged bool            `json:"unchanged,omitempty"` // nothing would be installed
	Changes   []changeMember  `json:"changes"`
	Warnings  []warningMember `json:"warnings"`
	Balances  balancesMember  `json:"balances"`
	Restarts  []string        `json:"restarts"`
}

// changeMember is one member of the stored form that would change.
type changeMember struct {
	Pointer string          `json:"pointer"`
	Before  json.RawMessage `json:"before,omitempty"` // absent: there is none
	After   json.RawMessage `json:"after,omitempty"`  // absent: it would be gone
}

// balancesMember says what would become of the balances that keys have now.
type balancesMember struct {
	Rule    string `json:"rule"`
	Live    int64  `json:"live"`
	Clamped int64  `json:"clamped"`
	Denied  int64  `json:"denied"`
	AtLeast bool   `json:"atLeast"`
}

// tryPut answers what a put would do, faults and conflicts as it would.
func (a *admin) tryPut(w http.ResponseWriter, r *http.Request, put policy.Put) (int, error) {
	run, err := a.policies.DryRun(r.Context(), put)
	if err != nil {
		return 0, a.withCurrentVersion(r, put.ID, err)
	}
	answer := dryRunAnswer{
		DryRun: true, ID: put.ID, Unchanged: run.Unchanged, Changes: []changeMember{}, Warnings: warningMembers(put.Change.Warnings), Restarts: []string{},
		Balances: balancesMember{
			Rule: put.Change.Balances.String(),
			Live: run.Balances.Live, Clamped: run.Balances.Clamped, Denied: run.Balances.Denied, AtLeast: run.Balances.AtLeast,
		},
	}
	var before *policy.Spec
	if run.Before != nil {
		answer.Replaces, before = run.Before.Version, run.Before.Spec
	}
	for _, d := range policy.Diff(before, put.Change.Spec) {
		answer.Changes = append(answer.Changes, changeMember{fragment(d.Pointer), json.RawMessage(d.Before), json.RawMessage(d.After)})
	}
	for _, pointer := range run.Restarts {
		answer.Restarts = append(answer.Restarts, fragment(pointer))
	}
	return a.writeValue(w, r, answer)
}

// writeValue answers 200 with the JSON of a value.
func (a *admin) writeValue(w http.ResponseWriter, r *http.Request, value any) (int, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return 0, err
	}
	return a.writeJSON(w, r, http.StatusOK, append(body, '\n')), nil
}
