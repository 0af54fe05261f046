package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/rationhq/ration/policy"
)

// Bounds of a page.
const (
	pageDefault = 100  // fits a terminal's scrollback
	pageMax     = 1000 // a page of the largest policies stays under 64 MB
)

// versionMax is the largest version number there can be: the store counts in
// 32 bits.
const versionMax = 1<<31 - 1

// getPolicy answers the version in force, or 304 when the caller has it.
func (a *admin) getPolicy(w http.ResponseWriter, r *http.Request) (int, error) {
	if _, err := readQuery(r); err != nil {
		return 0, err
	}
	id, err := pathPolicyID(r)
	if err != nil {
		return 0, err
	}
	known, err := parseTags(r.Header.Values("If-None-Match"))
	if err != nil {
		return 0, err
	}
	installed, err := a.policies.Get(r.Context(), id)
	if err != nil {
		return 0, err
	}
	return a.writeVersion(w, r, known, installed), nil
}

// getVersion answers one version, in force or not.
func (a *admin) getVersion(w http.ResponseWriter, r *http.Request) (int, error) {
	if _, err := readQuery(r); err != nil {
		return 0, err
	}
	id, err := pathPolicyID(r)
	if err != nil {
		return 0, err
	}
	version, err := strconv.Atoi(r.PathValue("version"))
	if err != nil || version < 1 || version > versionMax {
		return 0, notFound("A version is a whole number from 1.")
	}
	known, err := parseTags(r.Header.Values("If-None-Match"))
	if err != nil {
		return 0, err
	}
	installed, err := a.policies.Version(r.Context(), id, version)
	if err != nil {
		return 0, err
	}
	return a.writeVersion(w, r, known, installed), nil
}

// writeVersion answers one policy version, 304 when the caller knows it.
func (a *admin) writeVersion(w http.ResponseWriter, r *http.Request, known tags, installed *policy.Installed) int {
	w.Header().Set("Etag", entityTag(installed.Version))
	if known.matchWeakly(installed.Version) {
		a.identify(w, r)
		w.WriteHeader(http.StatusNotModified)
		return http.StatusNotModified
	}
	return a.writeJSON(w, r, http.StatusOK, append(appendVersion(nil, installed, nil), '\n'))
}

// listPolicies answers a page of policies in force, by id.
func (a *admin) listPolicies(w http.ResponseWriter, r *http.Request) (int, error) {
	query, err := readQuery(r, "after", "limit")
	if err != nil {
		return 0, err
	}
	limit, err := queryInt(query, "limit", pageDefault, 1, pageMax)
	if err != nil {
		return 0, err
	}
	after := query.Get("after")
	if after != "" && policy.ValidID(after) != nil {
		return 0, badRequest(`The query parameter "after" must be a policy's id.`)
	}
	// One more than asked for tells whether a page follows.
	page, err := a.policies.List(r.Context(), after, limit+1)
	if err != nil {
		return 0, err
	}
	if len(page) > limit {
		page = page[:limit]
		linkNext(w, "/v1/policies", query, page[limit-1].ID, limit)
	}
	return a.writeJSON(w, r, http.StatusOK, appendPage(nil, "policies", page)), nil
}

// listVersions answers a page of one policy's versions, the oldest first.
func (a *admin) listVersions(w http.ResponseWriter, r *http.Request) (int, error) {
	query, err := readQuery(r, "after", "limit")
	if err != nil {
		return 0, err
	}
	limit, err := queryInt(query, "limit", pageDefault, 1, pageMax)
	if err != nil {
		return 0, err
	}
	after, err := queryInt(query, "after", 0, 0, versionMax)
	if err != nil {
		return 0, err
	}
	id, err := pathPolicyID(r)
	if err != nil {
		return 0, err
	}
	page, err := a.policies.Versions(r.Context(), id, after, limit+1)
	if err != nil {
		return 0, err
	}
	if len(page) > limit {
		page = page[:limit]
		linkNext(w, "/v1/policies/"+id+"/versions", query, strconv.Itoa(page[limit-1].Version), limit)
	}
	return a.writeJSON(w, r, http.StatusOK, appendPage(nil, "versions", page)), nil
}

// linkNext names the page behind a row (RFC 8288), with this page's parameters
// otherwise.
func linkNext(w http.ResponseWriter, path string, query url.Values, after string, limit int) {
	next := url.Values{}
	maps.Copy(next, query)
	next.Set("after", after)
	next.Set("limit", strconv.Itoa(limit))
	w.Header().Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, path, next.Encode()))
}

// pathPolicyID gives the policy id in the path. One that cannot name a policy
// names none.
func pathPolicyID(r *http.Request) (string, error) {
	id := r.PathValue("policyId")
	if policy.ValidID(id) != nil {
		return "", notFound("No policy can have this id.")
	}
	return id, nil
}

// writeJSON answers with a whole JSON body.
func (a *admin) writeJSON(w http.ResponseWriter, r *http.Request, status int, body []byte) int {
	a.identify(w, r)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	a.write(r.Context(), w, body)
	return status
}

// identify sets what every answer of the admin listener has: the request's id,
// and that a stored copy must be checked (by its ETag) before it is used.
func (a *admin) identify(w http.ResponseWriter, r *http.Request) {
	ensureRequestID(w, r)
	w.Header().Set("Cache-Control", "no-cache")
}
