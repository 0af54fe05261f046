package httpapi

import (
	"net/http"

	"github.com/rationhq/ration/policy"
)

// rollbackPolicy installs the content of an older version as a new one, under
// the same conditions as a put and with the same answers.
func (a *admin) rollbackPolicy(w http.ResponseWriter, r *http.Request) (int, error) {
	return a.change(w, r, a.readRollback)
}

// readRollback reads the request: which version's content is wanted again, and
// as Expected the version it may replace.
func (a *admin) readRollback(r *http.Request) (policy.Put, error) {
	id, err := pathPolicyID(r)
	if err != nil {
		return policy.Put{}, err
	}
	precondition, err := readPrecondition(r.Header)
	if err != nil {
		return policy.Put{}, err
	}
	body, err := readJSON(r, nil, policyBytesMax)
	if err != nil {
		return policy.Put{}, err
	}
	rollback, err := policy.ParseRollback(body)
	if err != nil {
		return policy.Put{}, err
	}
	older, err := a.policies.Version(r.Context(), id, rollback.Version)
	if err != nil {
		return policy.Put{}, err
	}
	change, err := rollback.Change(older.Spec)
	if err != nil {
		return policy.Put{}, err
	}
	expected, err := a.expectedVersion(r, id, precondition)
	return policy.Put{ID: id, Expected: expected, Change: change}, err
}
