package pgstore

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// ReportShadow adds what an instance has seen of shadow policies to the reports
// on them. When it fails, none of it was added, unless the error is of a COMMIT
// whose answer was lost.
func (s *Store) ReportShadow(ctx context.Context, seen []policy.ShadowSeen) error {
	// In one order, so that instances that report on the same policies do not wait for each other in a circle.
	seen = slices.SortedFunc(slices.Values(seen), func(a, b policy.ShadowSeen) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Version, b.Version))
	})
	return s.control(ctx, "report on shadow policies", func(ctx context.Context, tx pgx.Tx) error {
		var calls pgx.Batch
		for i := range seen {
			queueShadow(&calls, &seen[i])
		}
		return tx.SendBatch(ctx, &calls).Close()
	})
}

// queueShadow queues the call of report_shadow_v1 for one policy version.
func queueShadow(calls *pgx.Batch, seen *policy.ShadowSeen) {
	keys := make([]policy.Key, len(seen.Keys))
	who := make([]string, len(seen.Keys))
	denied := make([]int64, len(seen.Keys))
	first := make([]int64, len(seen.Keys))
	last := make([]int64, len(seen.Keys))
	for i, key := range seen.Keys {
		keys[i], who[i], denied[i], first[i], last[i] = key.Key, key.Who, key.Denied, key.FirstAtMicros, key.LastAtMicros
	}
	calls.Queue("SELECT ration.report_shadow_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
		seen.Policy, seen.Version, seen.Decided, seen.Denied, seen.FirstAtMicros, seen.LastAtMicros, keys, who, denied, first, last)
}

// ShadowReport gives a page of at most limit keys of the report on a version
// of a policy, 0 for the one in force, the most denied first; not-found when
// there is no such version. A version that was never a shadow has decided
// nothing.
func (s *Store) ShadowReport(ctx context.Context, id string, version int, after policy.ShadowCursor, limit int) (policy.ShadowReport, error) {
	report := policy.ShadowReport{ID: id}
	err := s.control(ctx, "read the report on a shadow policy", func(ctx context.Context, tx pgx.Tx) error {
		var number int32
		err := tx.QueryRow(ctx, `
			SELECT v.number, v.version, coalesce(t.decided, 0), coalesce(t.denied, 0), coalesce(t.first_at, 0), coalesce(t.last_at, 0),
			       count(d.key), coalesce(sum(d.denied), 0)::bigint
			FROM ration.policy AS p JOIN ration.policy_version AS v USING (number)
			LEFT JOIN ration.shadow_total AS t ON t.policy = v.number AND t.version = v.version
			LEFT JOIN ration.shadow_denial AS d ON d.policy = v.number AND d.version = v.version
			WHERE p.id = $1 AND v.version = coalesce(nullif($2, 0), p.version)
			GROUP BY v.number, v.version, t.decided, t.denied, t.first_at, t.last_at`, id, version).
			Scan(&number, &report.Version, &report.Decided, &report.Denied, &report.FirstAtMicros, &report.LastAtMicros,
				&report.KeyCount, &report.Named)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return notFound()
		case err != nil:
			return err
		}
		rows, err := tx.Query(ctx, `
			SELECT d.key, d.who::text, d.denied, d.first_at, d.last_at FROM ration.shadow_denial AS d
			WHERE d.policy = $1 AND d.version = $2 AND ($3 = 0 OR (d.denied, d.key) < ($3, $4))
			ORDER BY d.denied DESC, d.key DESC LIMIT $5`, number, report.Version, after.Denied, after.Key, limit)
		if err != nil {
			return err
		}
		report.Keys, err = pgx.CollectRows(rows, pgx.RowToStructByPos[policy.ShadowDenials])
		return err
	})
	return report, err
}
