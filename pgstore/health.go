package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rationhq/ration/policy"
)

// Schema gives the schema that this program knows: it works on that major
// version, from the minor one on.
func Schema() (major, minorMin int) { return schemaMajor, schemaMinorMin }

// Ping checks that the store answers.
func (s *Store) Ping(ctx context.Context) error {
	return s.control(ctx, "ping", func(context.Context, pgx.Tx) error { return nil })
}

// CheckSchema checks that the schema is still one that this program knows. A
// store that gives no answer is store-unavailable, another schema is internal.
func (s *Store) CheckSchema(ctx context.Context) error {
	return s.control(ctx, "check the schema", func(ctx context.Context, tx pgx.Tx) error {
		err := checkSchema(ctx, tx.Conn())
		var store *policy.StoreError
		if err == nil || errors.As(err, &store) {
			return err
		}
		return &policy.Error{Code: policy.CodeInternal, Reason: policy.ReasonInternal, Detail: err.Error()}
	})
}

// PoolStats gives the state of the pool for policies and upkeep, and of the one
// about operations and slots; the sessions that decide are of neither.
func (s *Store) PoolStats() (upkeep, operations *pgxpool.Stat) {
	return s.pool.Stat(), s.operations.Stat()
}

// ConnectionsMax is how many connections a Store may open beside its sessions:
// both pools, and the one that listens.
func ConnectionsMax() int { return controlConnsMax + operationConnsMax + 1 }
