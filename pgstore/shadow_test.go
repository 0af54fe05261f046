package pgstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rationhq/ration/policy"
)

// denials are of a key by its number, whose account is named by it.
func denials(key uint64, denied, firstAtMicros, lastAtMicros int64) policy.ShadowDenials {
	return policy.ShadowDenials{
		Key: keyOf(key), Who: fmt.Sprintf(`{"account": "%d"}`, key), Denied: denied, FirstAtMicros: firstAtMicros, LastAtMicros: lastAtMicros,
	}
}

func counts(decided, denied, firstAtMicros, lastAtMicros int64) policy.ShadowCounts {
	return policy.ShadowCounts{Decided: decided, Denied: denied, FirstAtMicros: firstAtMicros, LastAtMicros: lastAtMicros}
}

func (b *bench) reportShadow(seen ...policy.ShadowSeen) {
	b.Helper()
	if err := b.store.ReportShadow(b.Context(), seen); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) shadowReport(id string, version int, after policy.ShadowCursor, limit int) policy.ShadowReport {
	b.Helper()
	report, err := b.store.ShadowReport(b.Context(), id, version, after, limit)
	if err != nil {
		b.Fatal(err)
	}
	return report
}

func TestReportsOnAShadowAddUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.install("p", 0, shape{capacity: 1, shadow: true}, 0)
	if diff := cmp.Diff(policy.ShadowReport{ID: "p", Version: 1, Keys: []policy.ShadowDenials{}}, b.shadowReport("p", 0, policy.ShadowCursor{}, 10)); diff != "" {
		t.Errorf("a shadow that decided nothing (-want +got):\n%s", diff)
	}
	// Two instances, of which the second knows of earlier decisions.
	b.reportShadow(policy.ShadowSeen{
		Policy: p.Number, Version: 1, ShadowCounts: counts(100, 5, 1000, 2000),
		Keys: []policy.ShadowDenials{denials(1, 2, 1100, 1200), denials(2, 3, 1300, 1400)},
	})
	b.reportShadow(policy.ShadowSeen{
		Policy: p.Number, Version: 1, ShadowCounts: counts(50, 9, 500, 2500),
		Keys: []policy.ShadowDenials{denials(3, 2, 600, 700), denials(1, 2, 1000, 1100), denials(4, 5, 2500, 2500)},
	}, policy.ShadowSeen{Policy: p.Number, Version: 2, ShadowCounts: counts(1, 0, 1, 1)})
	want := policy.ShadowReport{
		ID: "p", Version: 1, ShadowCounts: counts(150, 14, 500, 2500), KeyCount: 4, Named: 14,
		Keys: []policy.ShadowDenials{denials(4, 5, 2500, 2500), denials(1, 4, 1000, 1200), denials(2, 3, 1300, 1400), denials(3, 2, 600, 700)},
	}
	if diff := cmp.Diff(want, b.shadowReport("p", 0, policy.ShadowCursor{}, 10)); diff != "" {
		t.Errorf("the report (-want +got):\n%s", diff)
	}

	all := want.Keys
	want.Keys = all[:2]
	if diff := cmp.Diff(want, b.shadowReport("p", 1, policy.ShadowCursor{}, 2)); diff != "" {
		t.Errorf("the first page (-want +got):\n%s", diff)
	}
	want.Keys = all[2:]
	if diff := cmp.Diff(want, b.shadowReport("p", 1, policy.ShadowCursor{Denied: all[1].Denied, Key: all[1].Key}, 10)); diff != "" {
		t.Errorf("the second page (-want +got):\n%s", diff)
	}
	for id, version := range map[string]int{"p": 2, "none": 0} {
		if _, err := b.store.ShadowReport(t.Context(), id, version, policy.ShadowCursor{}, 10); codeOf(err) != policy.CodeNotFound {
			t.Errorf("version %d of %s: %v", version, id, err)
		}
	}
}

// However many keys there are, a version names 1,000 and counts all.
func TestAReportOnAShadowIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.install("p", 0, shape{capacity: 1, shadow: true}, 0)
	seen := func(from, to uint64) policy.ShadowSeen {
		seen := policy.ShadowSeen{Policy: p.Number, Version: 1, ShadowCounts: counts(2000, int64(to-from), 1, 1)}
		for key := from; key < to; key++ {
			seen.Keys = append(seen.Keys, denials(key, 1, 1, 1))
		}
		return seen
	}
	b.reportShadow(seen(0, 900))
	b.reportShadow(seen(800, 1200)) // 100 known, 100 that have room, 200 that have none
	b.reportShadow(seen(1100, 1300))
	report := b.shadowReport("p", 1, policy.ShadowCursor{}, 2000)
	if report.KeyCount != policy.ShadowKeysMax || len(report.Keys) != policy.ShadowKeysMax || report.Denied != 1500 || report.Named != 1100 || report.Decided != 6000 {
		t.Errorf("%d keys, %d on the page, %d denials, %d of them named, %d decisions",
			report.KeyCount, len(report.Keys), report.Denied, report.Named, report.Decided)
	}
	if last := report.Keys[len(report.Keys)-1].Key; last != keyOf(0) {
		t.Errorf("the last is %x: not the first that came have the room", last)
	}
	conn := b.service()
	refused(b, conn, "RN004", "more keys than there is room for", fmt.Sprintf(`SELECT ration.report_shadow_v1(%d, 1, 1, 1, 1, 1,
		array_fill('%032d'::uuid, ARRAY[1001]), array_fill('{}'::text, ARRAY[1001]), array_fill(1::bigint, ARRAY[1001]),
		array_fill(1::bigint, ARRAY[1001]), array_fill(1::bigint, ARRAY[1001]))`, p.Number, 0))
	refused(b, conn, "RN004", "a list that is shorter", fmt.Sprintf(
		`SELECT ration.report_shadow_v1(%d, 1, 1, 1, 1, 1, '{%032d}', '{"{}"}', '{1}', '{1}', '{}')`, p.Number, 0))
}

func TestOldReportsOnShadowsAreForgotten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.install("p", 0, shape{capacity: 1, shadow: true}, 0)
	const week = 7 * 24 * hour
	for version := range 3 {
		at := epochMicros + int64(version)*second
		b.reportShadow(policy.ShadowSeen{
			Policy: p.Number, Version: version + 1, ShadowCounts: counts(1, 1, at, at), Keys: []policy.ShadowDenials{denials(1, 1, at, at)},
		})
	}
	left := func(want string) {
		t.Helper()
		got := scalar[string](b, `SELECT coalesce(string_agg(format('%s/%s', t.version, (SELECT count(*) FROM ration.shadow_denial AS d
			WHERE d.policy = t.policy AND d.version = t.version)), ' ' ORDER BY t.version), '') FROM ration.shadow_total AS t`)
		if got != want {
			t.Errorf("left are %s, want %s", got, want)
		}
	}
	for _, c := range []struct {
		after   int64
		deleted int
		left    string
	}{{week, 0, "1/1 2/1 3/1"}, {week + second + 1, 2, "3/1"}, {2 * week, 1, ""}} {
		deleted, err := b.store.Clean(t.Context(), 0, epochMicros+c.after)
		if err != nil || deleted != c.deleted {
			t.Errorf("%d deleted, want %d (%v)", deleted, c.deleted, err)
		}
		left(c.left)
	}
	if rows := scalar[int](b, `SELECT count(*) FROM ration.shadow_denial`); rows != 0 {
		t.Errorf("%d rows of nobody's report are left", rows)
	}
}

// What names accounts is for the service and for operators alone.
func TestReadersSeeNoShadowReport(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for role, want := range map[string]bool{"ration_service": true, "ration_operator": true, "ration_reader": false} {
		for _, table := range []string{"ration.shadow_denial", "ration.shadow_total"} {
			if may := scalar[bool](b, `SELECT has_table_privilege($1, $2, 'SELECT')`, role, table); may != want {
				t.Errorf("%s may read %s: %t", role, table, may)
			}
			if scalar[bool](b, `SELECT has_table_privilege($1, $2, 'INSERT, UPDATE, DELETE')`, role, table) {
				t.Errorf("%s may write to %s", role, strings.TrimPrefix(table, "ration."))
			}
		}
	}
}
