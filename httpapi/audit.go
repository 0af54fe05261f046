package httpapi

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"github.com/rationhq/ration/policy"
)

// Audit keeps what was done.
type Audit interface {
	// Audit gives a page of rows. Errors are *policy.Error or the context's.
	Audit(ctx context.Context, query policy.AuditQuery) ([]policy.AuditRow, error)
}

// auditPageMax is less than of policies: a row has two of them.
const auditPageMax = 500

// auditOrders are the values of the query parameter that says which rows of
// the audit come first.
const auditNewest, auditOldest = "newest", "oldest"

// listAudit answers a page of the audit.
func (a *admin) listAudit(w http.ResponseWriter, r *http.Request) (int, error) {
	values, err := readQuery(r, "policy", "actor", "action", "order", "after", "limit")
	if err != nil {
		return 0, err
	}
	query, err := readAuditQuery(values)
	if err != nil {
		return 0, err
	}
	limit := query.Limit
	query.Limit++ // one more than asked for tells whether a page follows
	page, err := a.audit.Audit(r.Context(), query)
	if err != nil {
		return 0, err
	}
	if len(page) > limit {
		page = page[:limit]
		linkNext(w, "/v1/audit", values, strconv.FormatInt(page[limit-1].ID, 10), limit)
	}
	body := []byte(`{"rows":[`)
	for i := range page {
		body = appendAuditRow(separate(body), &page[i])
	}
	return a.writeJSON(w, r, http.StatusOK, append(body, "]}\n"...)), nil
}

func readAuditQuery(values url.Values) (query policy.AuditQuery, err error) {
	if query.Limit, err = queryInt(values, "limit", pageDefault, 1, auditPageMax); err != nil {
		return query, err
	}
	after, err := queryInt(values, "after", 0, 1, math.MaxInt)
	if err != nil {
		return query, err
	}
	query.After = int64(after)
	switch order := values.Get("order"); {
	case order == auditOldest:
		query.Oldest = true
	case order != auditNewest && values.Has("order"):
		return query, badRequest(`The query parameter "order" must be newest or oldest.`)
	}
	for name, into := range map[string]*string{"policy": &query.Policy, "actor": &query.Actor, "action": &query.Action} {
		if !values.Has(name) {
			continue
		}
		*into = values.Get(name)
		if *into == "" || !isQueryText(*into, policy.TextBytesMax) {
			return query, badRequest(fmt.Sprintf("The query parameter %q must be text of 1 to %d bytes.", name, policy.TextBytesMax))
		}
	}
	return query, nil
}

// appendAuditRow appends the JSON of a row. What it does not have is absent.
func appendAuditRow(dst []byte, row *policy.AuditRow) []byte {
	text := func(name, value string) {
		dst = append(dst, `,"`+name+`":`...)
		dst = appendString(dst, value)
	}
	number := func(name string, value int64) {
		dst = append(dst, `,"`+name+`":`...)
		dst = strconv.AppendInt(dst, value, 10)
	}
	dst = append(dst, `{"id":`...)
	dst = strconv.AppendInt(dst, row.ID, 10)
	dst = append(dst, `,"at":`...)
	dst = appendInstant(dst, row.AtMicros)
	text("actor", row.Actor)
	if row.Role != "" {
		text("role", row.Role)
	}
	text("action", row.Action)
	if row.Policy != "" {
		text("policy", row.Policy)
	}
	if row.VersionBefore > 0 {
		number("versionBefore", int64(row.VersionBefore))
	}
	if row.VersionAfter > 0 {
		number("versionAfter", int64(row.VersionAfter))
	}
	if row.Before != nil {
		dst = append(append(dst, `,"before":`...), row.Before...)
	}
	if row.After != nil {
		dst = append(append(dst, `,"after":`...), row.After...)
	}
	text("reason", row.Reason)
	text("requestId", row.RequestID)
	if row.Settled != nil {
		number("settled", *row.Settled)
	}
	if row.Clamped != nil {
		number("clamped", *row.Clamped)
	}
	text("previous", hex.EncodeToString(row.Previous))
	text("hash", hex.EncodeToString(row.Hash))
	return append(dst, '}')
}
