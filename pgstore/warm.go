package pgstore

import (
	"context"

	"github.com/rationhq/ration/policy"
)

// warmUps call each decision function once: a session's first call compiles a
// function and plans its statements, which under load can take longer than a
// call may.
var warmUps = [...]string{
	warmBatch("take_v1"), warmBatch("take_durable_v1"), warmBatch("take_new_v1"), warmBatch("take_new_durable_v1"), warmClaims,
}

// warmBatch is a peek of no policy.
func warmBatch(function string) string {
	return "SELECT f.o_stale FROM ration.policy_set AS s, ration." + function +
		"(0, s.generation, '{0}', '{00000000-0000-0000-0000-000000000000}', '{1}', '{0}') AS f"
}

// warmClaims charges a key of nobody's for one policy of each kind there is,
// under operation ids: most statements of decide_v1 are not reached with less.
const warmClaims = `
	SELECT f.o_stale
	FROM ration.policy_set AS s
	CROSS JOIN (SELECT array_agg(gen_random_uuid()) AS operations, array_agg(gen_random_uuid()) AS contents, array_agg(0::bigint) AS stated,
	                   array_agg(false) AS none, array_agg(p.number) AS numbers, array_agg(gen_random_uuid()) AS keys,
	                   array_agg(p.place) AS claims, array_agg(p.place) AS cells, array_agg(1::bigint) AS costs
	            FROM (SELECT k.number, (row_number() OVER ())::int AS place
	                  FROM (SELECT DISTINCT ON (q.algorithm, q.strict, q.durability) q.number FROM ration.policy AS q) AS k) AS p
	            HAVING count(*) > 0) AS c
	CROSS JOIN LATERAL ration.decide_v1(0, s.generation, c.operations, c.contents, c.stated, c.none, c.numbers, c.keys,
	                                    c.claims, c.cells, c.costs, c.none, 0) AS f`

// warm runs the warm-ups, and takes back what they wrote.
func (s *Session) warm(ctx context.Context) error {
	for _, call := range warmUps {
		err := s.tryOut(ctx, call)
		if err != nil && fault(err) != policy.StoreStateLost { // which the first real call sees to
			return err
		}
	}
	return nil
}

// tryOut runs a statement, however long it takes, in a transaction that is
// rolled back.
func (s *Session) tryOut(ctx context.Context, sql string) error {
	tx, err := s.conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // the connection shows at its next use whether that failed
	if _, err := tx.Exec(ctx, "SELECT set_config('statement_timeout', '0', true)"); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, sql)
	return err
}
