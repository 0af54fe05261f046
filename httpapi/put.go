package httpapi

import (
	"errors"
	"net/http"
	"slices"

	"github.com/rationhq/ration/policy"
)

// putPolicy installs a version of a policy: 201 when it is the first, 200 when
// it replaces one or changes nothing, 202 to a caller who waited in vain for it
// to be in force everywhere. The answer is the whole stored form, completed with
// the defaults, and carries its ETag although that form is not byte for byte
// what was sent.
func (a *admin) putPolicy(w http.ResponseWriter, r *http.Request) (int, error) {
	id := r.PathValue("policyId")
	if err := policy.ValidID(id); err != nil {
		return 0, err
	}
	return a.change(w, r, id, policy.ParseChange)
}

// change makes the change of a policy that parse reads from the body, or only
// tries it.
func (a *admin) change(w http.ResponseWriter, r *http.Request, id string, parse func(body []byte) (*policy.Change, error)) (int, error) {
	query, err := readQuery(r, dryRun, waitForInstall)
	if err != nil {
		return 0, err
	}
	dry, err := readDryRun(query)
	if err != nil {
		return 0, err
	}
	wait, err := a.beginInstallWait(query)
	if err != nil {
		return 0, err
	}
	defer wait.end()
	put, err := a.readPut(r, id, parse)
	if err != nil {
		return 0, err
	}
	put.Author = authorOf(r)
	put.Change.Warnings = append(put.Change.Warnings, a.review(put)...)
	if dry {
		return a.tryPut(w, r, put)
	}

	installed, changed, err := a.policies.Put(r.Context(), put)
	if err != nil {
		return 0, a.withCurrentVersion(r, put.ID, err)
	}
	w.Header().Set("Etag", entityTag(installed.Version))
	w.Header().Set("Content-Location", "/v1/policies/"+installed.ID)
	status := http.StatusOK
	if changed && put.Expected == 0 {
		w.Header().Set("Location", "/v1/policies/"+installed.ID)
		status = http.StatusCreated
	}
	return a.writeChange(w, r, wait, status, append(appendVersion(nil, installed, put.Change.Warnings), '\n')), nil
}

// readPut reads the request: its change, and as Expected the version it may
// replace.
func (a *admin) readPut(r *http.Request, id string, parse func(body []byte) (*policy.Change, error)) (policy.Put, error) {
	precondition, err := readPrecondition(r.Header)
	if err != nil {
		return policy.Put{}, err
	}
	body, err := readJSON(r, nil, PolicyBytesMax)
	if err != nil {
		return policy.Put{}, err
	}
	change, err := parse(body)
	if err != nil {
		return policy.Put{}, err
	}
	expected, err := a.expectedVersion(r, id, precondition)
	return policy.Put{ID: id, Expected: expected, Change: change}, err
}

// readPrecondition reads what the caller says of the version in force; the
// zero tags mean that there must be none.
func readPrecondition(header http.Header) (tags, error) {
	match, err := parseTags(header.Values("If-Match"))
	if err != nil {
		return tags{}, err
	}
	noneMatch, err := parseTags(header.Values("If-None-Match"))
	if err != nil {
		return tags{}, err
	}
	switch {
	case match.given() && noneMatch.given():
		return tags{}, badRequest("Give If-Match to change a policy or If-None-Match to create one, not both.")
	case match.any:
		return tags{}, badRequest(`If-Match: * is not supported: name the version that is to be replaced, such as "v7".`)
	case match.given():
		return match, nil
	case noneMatch.any:
		return tags{}, nil
	case noneMatch.given():
		return tags{}, badRequest("If-None-Match takes only * here: the policy must not exist.")
	}
	return tags{}, &policy.Error{
		Code: policy.CodeInvalid, Reason: reasonPreconditionRequired,
		Detail: `Give If-Match: "vN" to change version N, or If-None-Match: * to create the policy.`,
	}
}

// expectedVersion is the version that the caller allows to be replaced: 0 to
// create, the one it named, or the one in force when it is among several.
func (a *admin) expectedVersion(r *http.Request, id string, match tags) (int, error) {
	if !match.given() {
		return 0, nil
	}
	versions := match.strong()
	if len(versions) == 1 {
		return versions[0], nil
	}
	current, err := a.currentVersion(r, id)
	if err != nil {
		return 0, err
	}
	if slices.Contains(versions, current) {
		return current, nil
	}
	return 0, &versionConflictError{cause: newVersionConflict(), current: current}
}

// withCurrentVersion tells a conflict which version is in force; every other
// error stays what it is.
func (a *admin) withCurrentVersion(r *http.Request, id string, err error) error {
	conflict, ok := errors.AsType[*policy.Error](err)
	if !ok || conflict.Reason != policy.ReasonVersionConflict {
		return err
	}
	current, readErr := a.currentVersion(r, id)
	if readErr != nil {
		return readErr
	}
	return &versionConflictError{cause: conflict, current: current}
}

// currentVersion is the version in force, 0 when there is none.
func (a *admin) currentVersion(r *http.Request, id string) (int, error) {
	installed, err := a.policies.Get(r.Context(), id)
	if missing, ok := errors.AsType[*policy.Error](err); ok && missing.Code == policy.CodeNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return installed.Version, nil
}

func newVersionConflict() *policy.Error {
	return &policy.Error{
		Code: policy.CodeConflict, Reason: policy.ReasonVersionConflict,
		Detail: "None of the versions named is the one in force.",
	}
}
