package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// Delete ends a policy with a tombstone, its next version, and its audit row,
// in one transaction, and tells every instance. A version other than
// removal.Expected in force is version-conflict.
func (s *Store) Delete(ctx context.Context, removal policy.Removal) error {
	return s.deleteAt(ctx, removal, 0)
}

// deleteAt is Delete at an instant of a test clock; 0 in production.
func (s *Store) deleteAt(ctx context.Context, removal policy.Removal, nowMicros int64) error {
	return s.control(ctx, "delete a policy", func(ctx context.Context, tx pgx.Tx) error {
		var outcome string
		err := tx.QueryRow(ctx, `
			SELECT r.o_outcome FROM ration.delete_policy_v1($1, $2, $3, $4, $5, $6, nullif($7::bigint, 0)) AS r`,
			removal.ID, removal.Expected, removal.Actor, removal.Role.String(), removal.Reason, removal.RequestID, nowMicros).
			Scan(&outcome)
		if err == nil && outcome == "conflict" {
			return versionConflict("The policy's version in force is not the one that is to be deleted.")
		}
		return err
	})
}

// wasDeleted says of a tombstone's policy that it is no more.
func wasDeleted(tombstone *policy.Installed) error {
	return &policy.Error{
		Code: policy.CodeNotFound, Reason: policy.ReasonNotFound,
		Detail: fmt.Sprintf("The policy was deleted by version %d.", tombstone.Version),
	}
}
