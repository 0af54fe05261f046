package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/rationhq/ration/policy"
)

// Overrides are exceptions for single keys of policies. Errors are
// *policy.Error or the context's.
type Overrides interface {
	// PutOverride sets the override of one key, in the place of the one that it
	// has, unless it has none: created.
	PutOverride(ctx context.Context, put policy.OverridePut) (record *policy.OverrideRecord, created bool, err error)

	// RemoveOverride takes the override of one key away; not-found where there is
	// none.
	RemoveOverride(ctx context.Context, removal policy.OverrideRemoval) error

	// Overrides gives at most limit overrides of a policy, ascending by number,
	// those behind the number after (0 begins); not-found when there is no such
	// policy.
	Overrides(ctx context.Context, id string, after int64, limit int) ([]*policy.OverrideRecord, error)
}

// putOverride sets the override of the key that the query names: 201 when it
// had none, else 200.
func (a *admin) putOverride(w http.ResponseWriter, r *http.Request) (int, error) {
	id, query, err := overriddenPolicy(r)
	if err != nil {
		return 0, err
	}
	wait, err := a.cutInstallWait(query)
	if err != nil {
		return 0, err
	}
	defer wait.end()
	values, err := policy.ParseValues(query)
	if err != nil {
		return 0, err
	}
	body, err := readJSON(r, nil, decisionBytesMax)
	if err != nil {
		return 0, err
	}
	put, err := policy.ParseOverride(body)
	if err != nil {
		return 0, err
	}
	put.Author, put.PolicyID, put.Values = authorOf(r), id, *values
	record, created, err := a.overrides.PutOverride(r.Context(), *put)
	if err != nil {
		return 0, err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	set, err := json.Marshal(overrideOf(record))
	if err != nil {
		return 0, err
	}
	return a.writeChange(w, r, wait, status, append(set, '\n')), nil
}

// deleteOverride takes the override of the key that the query names away.
func (a *admin) deleteOverride(w http.ResponseWriter, r *http.Request) (int, error) {
	id, query, err := overriddenPolicy(r)
	if err != nil {
		return 0, err
	}
	wait, err := a.cutInstallWait(query)
	if err != nil {
		return 0, err
	}
	defer wait.end()
	reason, err := cutReason(query)
	if err != nil {
		return 0, err
	}
	values, err := policy.ParseValues(query)
	if err != nil {
		return 0, err
	}
	removal := policy.OverrideRemoval{Author: authorOf(r), PolicyID: id, Values: *values, Reason: reason}
	if err := a.overrides.RemoveOverride(r.Context(), removal); err != nil {
		return 0, err
	}
	if wait != nil {
		return a.writeChange(w, r, wait, http.StatusOK, []byte("{}")), nil
	}
	a.identify(w, r)
	w.WriteHeader(http.StatusNoContent)
	return http.StatusNoContent, nil
}

// overriddenPolicy reads of which policy a request is about an override, and
// the parameters that name its key.
func overriddenPolicy(r *http.Request) (id string, query url.Values, err error) {
	if id, err = pathPolicyID(r); err != nil {
		return "", nil, err
	}
	query, err = parseQuery(r)
	return id, query, err
}

// cutReason takes the reason of a change that has no body out of its
// parameters.
func cutReason(query url.Values) (string, error) {
	reasons := query["reason"]
	delete(query, "reason")
	switch {
	case len(reasons) == 0:
		return "", nil
	case len(reasons) > 1 || !isQueryText(reasons[0], reasonBytesMax):
		return "", badRequest(fmt.Sprintf(`The query parameter "reason" must be text of at most %d bytes, once.`, reasonBytesMax))
	}
	return reasons[0], nil
}

// listOverrides answers a page of a policy's overrides, in the order in which
// they were made.
func (a *admin) listOverrides(w http.ResponseWriter, r *http.Request) (int, error) {
	query, err := readQuery(r, "after", "limit")
	if err != nil {
		return 0, err
	}
	limit, err := queryInt(query, "limit", pageDefault, 1, pageMax)
	if err != nil {
		return 0, err
	}
	after := int64(0)
	if query.Has("after") {
		if after, err = strconv.ParseInt(query.Get("after"), 10, 64); err != nil || after < 0 {
			return 0, badRequest(`The query parameter "after" must be an override's number.`)
		}
	}
	id, err := pathPolicyID(r)
	if err != nil {
		return 0, err
	}
	// One more than asked for tells whether a page follows.
	records, err := a.overrides.Overrides(r.Context(), id, after, limit+1)
	if err != nil {
		return 0, err
	}
	if len(records) > limit {
		records = records[:limit]
		linkNext(w, "/v1/policies/"+id+"/overrides", query, strconv.FormatInt(records[limit-1].Number, 10), limit)
	}
	page := struct {
		Overrides []override `json:"overrides"`
	}{make([]override, len(records))}
	for i, record := range records {
		page.Overrides[i] = overrideOf(record)
	}
	return a.writeValue(w, r, page)
}

// override is the JSON of an override as its operator made it.
type override struct {
	Number     int64             `json:"number"`
	Attributes map[string]string `json:"attributes"`
	Action     string            `json:"action"`
	Limit      json.RawMessage   `json:"limit,omitempty"`
	Reason     string            `json:"reason"`
	Actor      string            `json:"actor"`
	CreatedAt  string            `json:"createdAt"`
	ExpiresAt  string            `json:"expiresAt,omitempty"` // absent: it lasts until it is removed
}

func overrideOf(record *policy.OverrideRecord) override {
	shown := override{
		Number: record.Number, Attributes: map[string]string{}, Action: record.Action.String(), Reason: record.Reason, Actor: record.Actor,
		CreatedAt: instantText(record.CreatedAtMicros),
	}
	for attribute, value := range record.Values {
		if value != "" {
			shown.Attributes[policy.Attribute(attribute).RequestMember()] = value
		}
	}
	if record.Limit != nil {
		shown.Limit = record.Limit.JSON()
	}
	if record.ExpiresAtMicros > 0 {
		shown.ExpiresAt = instantText(record.ExpiresAtMicros)
	}
	return shown
}
