package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

// stubAudit has rows of one policy, the oldest first.
type stubAudit struct{ rows []policy.AuditRow }

func (s stubAudit) Audit(_ context.Context, query policy.AuditQuery) ([]policy.AuditRow, error) {
	rows := slices.Clone(s.rows)
	if !query.Oldest {
		slices.Reverse(rows)
	}
	var page []policy.AuditRow
	for _, row := range rows {
		behind := query.After == 0 || row.ID > query.After == query.Oldest && row.ID != query.After
		if behind && len(page) < query.Limit && (query.Actor == "" || row.Actor == query.Actor) {
			page = append(page, row)
		}
	}
	return page, nil
}

// threeRows is an audit of a creation, a change and the end of its sweep.
func threeRows() stubAudit {
	settled, clamped := int64(1200), int64(0)
	return stubAudit{rows: []policy.AuditRow{
		{
			ID: 1, AtMicros: nowMicros, Actor: "ana", Role: "operator", Action: "policy.created", Policy: "report-create", VersionAfter: 1,
			After: []byte(`{"per":["account"]}`), Reason: "a start", RequestID: "r-1", Previous: []byte{}, Hash: []byte{0xaa},
		},
		{
			ID: 2, AtMicros: nowMicros + 1, Actor: "ana", Role: "operator", Action: "policy.changed", Policy: "report-create", VersionBefore: 1, VersionAfter: 2,
			Before: []byte(`{"per":["account"]}`), After: []byte(`{"per":["ip"]}`), Reason: `"quoted"`, RequestID: "r-2", Previous: []byte{0xaa}, Hash: []byte{0xbb},
		},
		{
			ID: 3, AtMicros: nowMicros + 2, Actor: "ration", Action: "policy.swept", Policy: "report-create", VersionAfter: 2,
			Settled: &settled, Clamped: &clamped, Previous: []byte{0xbb}, Hash: []byte{0xcc},
		},
	}}
}

func TestAuditExchanges(t *testing.T) {
	t.Parallel()
	handler := httpapi.NewAdmin(httpapi.AdminConfig{Policies: new(stubPolicies), Audit: threeRows(), Actor: "operator"})
	for name, target := range map[string]string{
		"list":  "/v1/audit",
		"page":  "/v1/audit?order=oldest&limit=1&actor=ana",
		"order": "/v1/audit?order=any",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exchange{name: "audit-" + name, handler: handler, method: http.MethodGet, target: target}.check(t)
		})
	}
}

// Pages, followed by their links, give every row once.
func TestPagesOfTheAuditFollowOneAnother(t *testing.T) {
	t.Parallel()
	handler := httpapi.NewAdmin(httpapi.AdminConfig{Policies: new(stubPolicies), Audit: threeRows(), Actor: "operator"})
	for _, order := range []string{"newest", "oldest"} {
		seen := 0
		for target := "/v1/audit?limit=1&order=" + order; target != ""; seen++ {
			answer := call(handler, http.MethodGet, target, "")
			want := fmt.Sprintf(`{"rows":[{"id":%d,`, map[string]int{"newest": 3 - seen, "oldest": 1 + seen}[order])
			if !strings.HasPrefix(answer.Body.String(), want) {
				t.Fatalf("%s: %s, want it to begin with %s", target, answer.Body, want)
			}
			target, _, _ = strings.Cut(strings.TrimPrefix(answer.Header().Get("Link"), "<"), ">")
		}
		if seen != 3 {
			t.Errorf("%s first: %d pages, want 3", order, seen)
		}
	}
}

func TestFaultyQueriesOfTheAudit(t *testing.T) {
	t.Parallel()
	handler := httpapi.NewAdmin(httpapi.AdminConfig{Policies: new(stubPolicies), Audit: threeRows(), Actor: "operator"})
	for _, query := range []string{
		"limit=0", "limit=501", "limit=x", "after=0", "after=-1", "after=9223372036854775808", "order=", "order=NEWEST",
		"policy=", "actor=", "action=", "actor=%ff", "actor=a%00", "actor=" + strings.Repeat("a", 257), "actor=a&actor=b", "reason=x",
		"policy=" + url.QueryEscape("\x00"),
	} {
		if answer := call(handler, http.MethodGet, "/v1/audit?"+query, ""); answer.Code != http.StatusBadRequest {
			t.Errorf("%s: %d, want 400", query, answer.Code)
		}
	}
}
