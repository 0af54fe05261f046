package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// auditPieceRows is how many rows of the audit are verified in one statement:
// with the largest policies there can be, some 30 MB to hash.
const auditPieceRows = 1000

// Audit gives a page of the audit.
func (s *Store) Audit(ctx context.Context, query policy.AuditQuery) (rows []policy.AuditRow, err error) {
	sql, arguments := auditSQL(&query)
	err = s.control(ctx, "list the audit", func(ctx context.Context, tx pgx.Tx) error {
		found, err := tx.Query(ctx, sql, arguments...)
		if err != nil {
			return err
		}
		rows, err = pgx.CollectRows(found, readAuditRow)
		return err
	})
	return rows, err
}

// auditSQL is the statement of a query. What is not asked for is not in it, so
// that what is asked for finds its index.
func auditSQL(query *policy.AuditQuery) (sql string, arguments []any) {
	var conditions []string
	where := func(condition string, value any) {
		arguments = append(arguments, value)
		conditions = append(conditions, fmt.Sprintf(condition, len(arguments)))
	}
	for column, value := range map[string]string{"policy": query.Policy, "actor": query.Actor, "action": query.Action} {
		if value != "" {
			where("a."+column+" = $%d", value)
		}
	}
	order, behind := "DESC", "a.id < $%d"
	if query.Oldest {
		order, behind = "ASC", "a.id > $%d"
	}
	if query.After > 0 {
		where(behind, query.After)
	}
	sql = `
		SELECT a.id, a.at, a.actor, a.role, a.action, coalesce(a.policy, ''), coalesce(a.version_before, 0), coalesce(a.version_after, 0),
		       a.before::text, a.after::text, a.reason, a.request_id, a.settled, a.clamped, a.previous, a.hash
		FROM ration.audit AS a`
	if len(conditions) > 0 {
		sql += " WHERE " + strings.Join(conditions, " AND ")
	}
	arguments = append(arguments, query.Limit)
	return sql + fmt.Sprintf(" ORDER BY a.id %s LIMIT $%d", order, len(arguments)), arguments
}

func readAuditRow(row pgx.CollectableRow) (a policy.AuditRow, err error) {
	var before, after *string
	err = row.Scan(&a.ID, &a.AtMicros, &a.Actor, &a.Role, &a.Action, &a.Policy, &a.VersionBefore, &a.VersionAfter,
		&before, &after, &a.Reason, &a.RequestID, &a.Settled, &a.Clamped, &a.Previous, &a.Hash)
	if before != nil {
		a.Before = []byte(*before)
	}
	if after != nil {
		a.After = []byte(*after)
	}
	return a, err
}

// VerifyAudit walks the audit's chain from its first row to its head, in
// pieces, or up to the first row that is wrong. More rows may be written
// meanwhile.
func (s *Store) VerifyAudit(ctx context.Context) (policy.AuditChain, error) {
	chain := policy.AuditChain{Hash: []byte{}}
	for {
		done, err := s.verifyPiece(ctx, &chain)
		if err != nil || done || chain.Fault != policy.AuditWhole {
			return chain, err
		}
	}
}

// verifyPiece goes on where chain has come to.
func (s *Store) verifyPiece(ctx context.Context, chain *policy.AuditChain) (done bool, err error) {
	err = s.control(ctx, "verify the audit", func(ctx context.Context, tx pgx.Tx) error {
		var walked int64
		var fault *policy.AuditFault
		var row *int64
		err := tx.QueryRow(ctx, `SELECT v.o_rows, v.o_last, v.o_hash, v.o_done, v.o_fault, v.o_row FROM ration.audit_verify_v1($1, $2, $3) AS v`,
			chain.Last, chain.Hash, auditPieceRows).Scan(&walked, &chain.Last, &chain.Hash, &done, &fault, &row)
		chain.Rows += walked
		if fault != nil && row != nil {
			chain.Fault, chain.Row = *fault, *row
		}
		return err
	})
	return done, err
}

// AuditHash gives the hash of a row of the audit; not-found when there is no
// such row.
func (s *Store) AuditHash(ctx context.Context, id int64) (hash []byte, err error) {
	err = s.control(ctx, "read the audit", func(ctx context.Context, tx pgx.Tx) error {
		err := tx.QueryRow(ctx, "SELECT a.hash FROM ration.audit AS a WHERE a.id = $1", id).Scan(&hash)
		if errors.Is(err, pgx.ErrNoRows) {
			return &policy.Error{Code: policy.CodeNotFound, Reason: policy.ReasonNotFound, Detail: "The audit has no such row."}
		}
		return err
	})
	return hash, err
}
