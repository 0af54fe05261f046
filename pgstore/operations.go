package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// FindOperation gives what was decided under an operation's key, without its
// operation id, which is not stored; or not-found: nothing was decided so far,
// or it is no longer kept.
func (s *Store) FindOperation(ctx context.Context, operation policy.Key) (decision policy.Decision, err error) {
	err = s.operate(ctx, "find an operation", func(ctx context.Context, conn *pgx.Conn) error {
		verdict, err := readOutcome(ctx, conn, operation)
		if err != nil {
			return err
		}
		find, err := readVersions(ctx, conn, verdict.Parts)
		if err != nil {
			return err
		}
		decision, err = verdict.Decision("", nil, find)
		return err
	})
	return decision, err
}

// readOutcome reads what an operation was answered.
func readOutcome(ctx context.Context, conn *pgx.Conn, operation policy.Key) (*policy.Verdict, error) {
	verdict := &policy.Verdict{Status: policy.ClaimReplayed}
	rows, err := conn.Query(ctx, `
		SELECT o.allowed, o.decided_at, p.policy, p.version, p.admitted, p.remaining, p.retry_after, p.reset_after, p.cost,
		       coalesce(p.slot, '00000000-0000-0000-0000-000000000000'), coalesce(p.slot_expires_at, 0)
		FROM ration.operation AS o CROSS JOIN LATERAL unnest(o.parts) AS p
		WHERE o.shard = $1 AND o.key = $2`, shard, operation)
	if err != nil {
		return nil, err
	}
	verdict.Parts, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p policy.Part, err error) {
		err = row.Scan(&verdict.Allowed, &verdict.AtMicros, &p.Policy, &p.Version, &p.Allowed, &p.Remaining, &p.RetryAfterMicros,
			&p.ResetAfterMicros, &p.Cost, &p.Slot.ID, &p.Slot.ExpiresAtMicros)
		return p, err
	})
	if err == nil && len(verdict.Parts) == 0 {
		err = &policy.Error{
			Code: policy.CodeNotFound, Reason: policy.ReasonNotFound,
			Detail: "Nothing has been decided under this operation id so far.",
		}
	}
	return verdict, err
}

// readVersions reads the policies and versions of parts.
func readVersions(ctx context.Context, conn *pgx.Conn, parts []policy.Part) (policy.Find, error) {
	numbers, versions := make([]int32, len(parts)), make([]int, len(parts))
	for i := range parts {
		numbers[i], versions[i] = parts[i].Policy, parts[i].Version
	}
	found, err := all(conn.Query(ctx, installedSQL+"(p.number, v.version) IN (SELECT w.number, w.version FROM unnest($1::int[], $2::int[]) AS w (number, version))", numbers, versions))
	if err != nil {
		return nil, err
	}
	return func(number int32, version int) (*policy.Installed, error) {
		for _, installed := range found {
			if installed.Number == number && installed.Version == version {
				return installed, nil
			}
		}
		return nil, notFound()
	}, nil
}

// Settle replaces the cost that an operation was charged, once.
func (s *Store) Settle(ctx context.Context, settlement policy.Settlement) (policy.Settled, error) {
	return s.settleAt(ctx, settlement, 0)
}

// settleAt is Settle at an instant of a test clock; 0 in production.
func (s *Store) settleAt(ctx context.Context, settlement policy.Settlement, nowMicros int64) (settled policy.Settled, err error) {
	err = s.operate(ctx, "settle an operation", func(ctx context.Context, conn *pgx.Conn) error {
		var policies []string
		var versions []int
		var charged, actual []int64
		var applied, clamped []bool
		err := conn.QueryRow(ctx, `
			SELECT s.o_status, coalesce(s.o_at, 0), s.o_version, s.o_charged, s.o_actual, s.o_applied, s.o_clamped,
			       ARRAY(SELECT split_part(p.id::text, '!', 1) FROM unnest(s.o_policy) WITH ORDINALITY AS u (number, place)
			             JOIN ration.policy AS p USING (number) ORDER BY u.place)
			FROM ration.settle_v1($1, $2, $3, nullif($4::bigint, 0)) AS s`,
			shard, settlement.Operation, settlement.ActualCost, nowMicros).Scan(
			&settled.Status, &settled.AtMicros, &versions, &charged, &actual, &applied, &clamped, &policies)
		if err != nil {
			return err
		}
		if settled.Status > policy.SettleSlots {
			return errResult
		}
		for _, length := range [...]int{len(versions), len(charged), len(actual), len(applied), len(clamped)} {
			if length != len(policies) {
				return errResult
			}
		}
		for i, id := range policies {
			settled.Parts = append(settled.Parts, policy.SettledPart{
				Policy: id, Version: versions[i], Charged: charged[i], Actual: actual[i], Applied: applied[i], Clamped: clamped[i],
			})
		}
		return nil
	})
	return settled, err
}
