package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// PutOverride sets the override of one key, with its audit row in one
// transaction, and gives it and the generation with which it is in force. A
// key that had none has one now: created. The error is not-found where there
// is no such policy, invalid-request where the values name no key of it,
// policy-invalid where the limit is of another kind than the policy's or the
// override is over already, too-many-overrides.
func (s *Store) PutOverride(ctx context.Context, put policy.OverridePut) (record *policy.OverrideRecord, created bool, generation int64, err error) {
	return s.putOverrideAt(ctx, put, 0)
}

// putOverrideAt is PutOverride at an instant of a test clock; 0 in production.
func (s *Store) putOverrideAt(
	ctx context.Context, put policy.OverridePut, nowMicros int64,
) (record *policy.OverrideRecord, created bool, generation int64, err error) {
	err = s.control(ctx, "set an override", func(ctx context.Context, tx pgx.Tx) error {
		installed, err := inForce(ctx, tx, put.PolicyID, &put.Values)
		if err != nil {
			return err
		}
		var limit *string
		var n, d, capacity *int64
		if put.Limit != nil {
			text, rate := string(put.Limit.JSON()), storedRate(put.Limit)
			limit, n, d, capacity = &text, &rate.N, &rate.D, &put.Limit.Capacity
		}
		var outcome string
		var number int64
		var members []string
		err = tx.QueryRow(ctx, `
			SELECT r.o_outcome, coalesce(r.o_number, 0), r.o_generation, r.o_members
			FROM ration.put_override_v1($1, $2::jsonb, $3, $4::json, $5, $6, $7, nullif($8::bigint, 0), nullif($9::bigint, 0), $10, $11, $12,
			                            $13, nullif($14::bigint, 0)) AS r`,
			put.PolicyID, attributesOf(installed.Spec, &put.Values), put.Action.String(), limit, n, d, capacity, put.ExpiresAtMicros,
			put.LastsMicros, put.Actor, put.Role.String(), put.Reason, put.RequestID, nowMicros).Scan(&outcome, &number, &generation, &members)
		if err != nil {
			return err
		}
		if err := overrideRefused(outcome, members); err != nil {
			return err
		}
		created = outcome == "set"
		records, err := overrides(tx.Query(ctx, overridesSQL+"o.number = $1", number))
		if err == nil {
			record = records[0]
		}
		return err
	})
	return record, created, generation, err
}

// RemoveOverride takes the override of one key away, with its audit row in
// one transaction, and gives the generation with which it is gone. The error
// is not-found where there is none, invalid-request where the values name no
// key of the policy.
func (s *Store) RemoveOverride(ctx context.Context, removal policy.OverrideRemoval) (generation int64, err error) {
	return s.removeOverrideAt(ctx, removal, 0)
}

// removeOverrideAt is RemoveOverride at an instant of a test clock; 0 in
// production.
func (s *Store) removeOverrideAt(ctx context.Context, removal policy.OverrideRemoval, nowMicros int64) (generation int64, err error) {
	err = s.control(ctx, "remove an override", func(ctx context.Context, tx pgx.Tx) error {
		installed, err := inForce(ctx, tx, removal.PolicyID, &removal.Values)
		if err != nil {
			return err
		}
		var outcome string
		var members []string
		err = tx.QueryRow(ctx, `
			SELECT r.o_outcome, r.o_generation, r.o_members
			FROM ration.remove_override_v1($1, $2::jsonb, $3, $4, $5, $6, nullif($7::bigint, 0)) AS r`,
			removal.PolicyID, attributesOf(installed.Spec, &removal.Values), removal.Actor, removal.Role.String(), removal.Reason,
			removal.RequestID, nowMicros).Scan(&outcome, &generation, &members)
		if err != nil {
			return err
		}
		return overrideRefused(outcome, members)
	})
	return generation, err
}

// overrideRefused says why the store changed no override, nil where it did.
func overrideRefused(outcome string, members []string) error {
	switch outcome {
	case "absent":
		return &policy.Error{
			Code: policy.CodeNotFound, Reason: policy.ReasonNotFound, Detail: "There is no such policy, or no override for this key.",
		}
	case "key": // the policy has changed since its key was checked
		return policy.Invalid(policy.ReasonInvalidRequest, fmt.Sprintf("The policy's key is made of %v.", members))
	case "limit":
		faults := make([]policy.Fault, len(members))
		for i, member := range members {
			faults[i] = policy.Fault{Pointer: "/limit/" + member, Detail: "must be the policy's own: an override has another limit of the same kind"}
		}
		return policy.Invalid(policy.ReasonPolicyInvalid, "The limit is of another kind than the policy's.", faults...)
	case "expired":
		return policy.Invalid(policy.ReasonPolicyInvalid, "The override would be over already.",
			policy.Fault{Pointer: "/expiresAt", Detail: "must not have passed on the store's clock"})
	case "full":
		return policy.Invalid(policy.ReasonTooManyOverrides, "A policy has at most 1,000 overrides, and all have at most 100,000.")
	}
	return nil
}

// overridden refuses a restart that overrides are in the way of.
func overridden(attributes []string) error {
	return policy.Invalid(policy.ReasonPolicyInvalid,
		fmt.Sprintf("The policy cannot begin anew while keys of it have overrides that it would not fit: remove those of %v first.", attributes),
		policy.Fault{Pointer: "/balances", Detail: "must not be restart while there are such overrides"})
}

// Overrides gives at most limit overrides of a policy behind the number after,
// ascending; not-found when there is no such policy.
func (s *Store) Overrides(ctx context.Context, id string, after int64, limit int) (records []*policy.OverrideRecord, err error) {
	err = s.control(ctx, "list overrides", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := one(tx.Query(ctx, installedSQL+"p.id = $1 AND v.version = p.version AND NOT v.deleted", id)); err != nil {
			return err
		}
		records, err = overrides(tx.Query(ctx, overridesSQL+"p.id = $1 AND o.number > $2 ORDER BY o.number LIMIT $3", id, after, limit))
		return err
	})
	return records, err
}

// overridesSQL reads overrides as their operators made them.
const overridesSQL = `
	SELECT o.number, p.id::text, o.attributes, o.action, coalesce((v.content -> 'limit')::text, ''), o.reason, o.actor, o.created_at,
	       coalesce(o.expires_at, 0)
	FROM ration.override AS o
	JOIN ration.policy AS p ON p.number = o.policy
	LEFT JOIN ration.policy AS q ON q.number = o.limited
	LEFT JOIN ration.policy_version AS v ON v.number = q.number AND v.version = q.version
	WHERE `

// overrides reads every row of a query of [overridesSQL].
func overrides(rows pgx.Rows, err error) ([]*policy.OverrideRecord, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*policy.OverrideRecord, error) {
		record := new(policy.OverrideRecord)
		var attributes map[string]string
		var action, limit string
		err := row.Scan(&record.Number, &record.PolicyID, &attributes, &action, &limit, &record.Reason, &record.Actor, &record.CreatedAtMicros,
			&record.ExpiresAtMicros)
		if err != nil {
			return nil, err
		}
		record.Action, record.Limit, err = readAction(action, limit)
		return record, errors.Join(err, readAttributes(attributes, &record.Values))
	})
}

// readAction reads what an override does, and its limit, nil where it has
// none.
func readAction(name, stored string) (action policy.OverrideAction, limit *policy.Limit, err error) {
	action, known := policy.ParseOverrideAction(name)
	switch {
	case !known:
		return action, nil, errResult
	case action == policy.OverrideLimit:
		limit, err = policy.ParseLimit([]byte(stored))
	}
	return action, limit, err
}

// readAttributes reads values by the names that SQL uses.
func readAttributes(attributes map[string]string, values *[policy.AttributeCount]string) error {
	for name, value := range attributes {
		attribute, known := policy.ParseAttribute(name)
		if !known {
			return errResult
		}
		values[attribute] = value
	}
	return nil
}
