package httpapi

import (
	"net/http"

	"github.com/rationhq/ration/policy"
)

// getDecision answers what was decided under an operation id: 200, whether
// that allowed or denied. It is not the decision of this call, so that no
// header tells of it.
func (d *decisions) getDecision(w http.ResponseWriter, r *http.Request, gateway *policy.Gateway) (int, error) {
	query, err := readQuery(r, "verifiedAccount")
	if err != nil {
		return 0, err
	}
	account := query.Get("verifiedAccount")
	if account == "" && query.Has("verifiedAccount") {
		return 0, badRequest(`The query parameter "verifiedAccount" must not be empty; leave it out where there is no account.`)
	}
	if err := gateway.CheckAccount(account); err != nil {
		return 0, err
	}
	id := pathText(r, "operationId")
	decision, err := d.operations.FindOperation(r.Context(), policy.OperationKeyOf(gateway.Name, account, id))
	if err != nil {
		return 0, err
	}
	decision.Detail.OperationID = id
	answer := appendDecision([]byte{'{'}, &decision, d.decisionWait(&decision))
	return d.writeJSON(w, r, append(answer, "}\n"...)), nil
}
