package httpapi

import (
	"net/http"

	"github.com/rationhq/ration/policy"
)

// reasonBytesMax bounds the reason of a change that has no body.
const reasonBytesMax = 1000

// deletePolicy ends a policy. The answer is its last version, which says so.
func (a *admin) deletePolicy(w http.ResponseWriter, r *http.Request) (int, error) {
	query, err := readQuery(r, "reason", waitForInstall)
	if err != nil {
		return 0, err
	}
	id, err := pathPolicyID(r)
	if err != nil {
		return 0, err
	}
	match, err := readMatch(r.Header)
	if err != nil {
		return 0, err
	}
	reason, err := cutReason(query)
	if err != nil {
		return 0, err
	}
	wait, err := a.beginInstallWait(query)
	if err != nil {
		return 0, err
	}
	defer wait.end()
	expected, err := a.expectedVersion(r, id, match)
	if err != nil {
		return 0, err
	}
	tombstone, err := a.policies.Delete(r.Context(), policy.Removal{Author: authorOf(r), ID: id, Expected: expected, Reason: reason})
	if err != nil {
		return 0, a.withCurrentVersion(r, id, err)
	}
	return a.writeChange(w, r, wait, http.StatusOK, append(appendVersion(nil, tombstone, nil), '\n')), nil
}

// readMatch reads the version that may be ended: there must be one.
func readMatch(header http.Header) (tags, error) {
	match, err := readPrecondition(header)
	if err == nil && !match.given() {
		err = badRequest("If-None-Match has no meaning here: give If-Match with the version that is to be deleted.")
	}
	return match, err
}
