package httpapi

import (
	"context"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/rationhq/ration/policy"
)

// Shadows keeps what shadow policies would have done.
type Shadows interface {
	// ShadowReport gives a page of at most limit keys of the report on a version
	// of a policy, 0 for the one in force, the most denied first; not-found when
	// there is no such version. Errors are *policy.Error or the context's.
	ShadowReport(ctx context.Context, id string, version int, after policy.ShadowCursor, limit int) (policy.ShadowReport, error)
}

// getShadowReport answers a page of what a policy version would have denied
// while it was a shadow, and to whom.
func (a *admin) getShadowReport(w http.ResponseWriter, r *http.Request) (int, error) {
	query, err := readQuery(r, "version", "after", "limit")
	if err != nil {
		return 0, err
	}
	version, err := queryInt(query, "version", 0, 1, versionMax)
	if err != nil {
		return 0, err
	}
	limit, err := queryInt(query, "limit", pageDefault, 1, policy.ShadowKeysMax)
	if err != nil {
		return 0, err
	}
	var after policy.ShadowCursor
	if query.Has("after") {
		if after, err = parseShadowCursor(query.Get("after")); err != nil {
			return 0, err
		}
	}
	id, err := pathPolicyID(r)
	if err != nil {
		return 0, err
	}
	// One more than asked for tells whether a page follows.
	report, err := a.shadows.ShadowReport(r.Context(), id, version, after, limit+1)
	if err != nil {
		return 0, err
	}
	if len(report.Keys) > limit {
		report.Keys = report.Keys[:limit]
		last := &report.Keys[limit-1]
		linkNext(w, "/v1/policies/"+id+"/shadow-report", url.Values{"version": {strconv.Itoa(report.Version)}},
			formatShadowCursor(policy.ShadowCursor{Denied: last.Denied, Key: last.Key}), limit)
	}
	return a.writeJSON(w, r, http.StatusOK, append(appendShadowReport(nil, &report), '\n')), nil
}

// formatShadowCursor writes where a page ended: how many were denied of its
// last key, and the key.
func formatShadowCursor(cursor policy.ShadowCursor) string {
	return strconv.FormatInt(cursor.Denied, 10) + "-" + hex.EncodeToString(cursor.Key[:])
}

// parseShadowCursor reads what formatShadowCursor writes.
func parseShadowCursor(text string) (cursor policy.ShadowCursor, err error) {
	denied, key, _ := strings.Cut(text, "-")
	bytes, keyErr := hex.DecodeString(key)
	cursor.Denied, err = strconv.ParseInt(denied, 10, 64)
	if err != nil || keyErr != nil || cursor.Denied < 1 || copy(cursor.Key[:], bytes) < len(cursor.Key) || len(bytes) > len(cursor.Key) {
		return policy.ShadowCursor{}, badRequest(`The query parameter "after" is not one that a page's Link gave.`)
	}
	return cursor, nil
}

// appendShadowReport appends the JSON of a page. Instants are absent where
// nothing was decided.
func appendShadowReport(dst []byte, report *policy.ShadowReport) []byte {
	number := func(name string, value int64) {
		dst = append(dst, `,"`+name+`":`...)
		dst = strconv.AppendInt(dst, value, 10)
	}
	instant := func(name string, micros int64) {
		dst = append(dst, `,"`+name+`":`...)
		dst = appendInstant(dst, micros)
	}
	dst = append(dst, '{')
	dst = appendPolicy(dst, report.ID, report.Version)
	number("decided", report.Decided)
	number("denied", report.Denied)
	number("deniedOthers", report.Denied-report.Named)
	number("keyCount", int64(report.KeyCount))
	if report.Decided > 0 {
		instant("firstAt", report.FirstAtMicros)
		instant("lastAt", report.LastAtMicros)
	}
	dst = append(dst, `,"keys":[`...)
	for i := range report.Keys {
		key := &report.Keys[i]
		dst = append(separate(dst), `{"key":"`...)
		dst = hex.AppendEncode(dst, key.Key[:])
		dst = append(dst, `","who":`...)
		dst = append(dst, key.Who...)
		number("denied", key.Denied)
		instant("firstAt", key.FirstAtMicros)
		instant("lastAt", key.LastAtMicros)
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}
