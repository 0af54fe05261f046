package httpapi

import (
	"net/http"

	"github.com/rationhq/ration/policy"
)

// rollbackPolicy installs the content of an older version as a new one, under
// the same conditions as a put and with the same answers.
func (a *admin) rollbackPolicy(w http.ResponseWriter, r *http.Request) (int, error) {
	id, err := pathPolicyID(r)
	if err != nil {
		return 0, err
	}
	return a.change(w, r, id, func(body []byte) (*policy.Change, error) {
		rollback, err := policy.ParseRollback(body)
		if err != nil {
			return nil, err
		}
		older, err := a.policies.Version(r.Context(), id, rollback.Version)
		if err != nil {
			return nil, err
		}
		return rollback.Change(older.Spec)
	})
}
