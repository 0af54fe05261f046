package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// loadOverrides gives all policies that have changed since a generation, in
// the snapshot that they were read in, the overrides that they have: one that
// is gone is not among them.
func loadOverrides(ctx context.Context, tx pgx.Tx, since int64, changed []*policy.Installed) error {
	numbered := make(map[int32]*policy.Installed, len(changed))
	for _, installed := range changed {
		numbered[installed.Number] = installed
	}
	rows, err := tx.Query(ctx, `
		SELECT o.policy, o.key, o.attributes, o.action, coalesce(q.number, 0), coalesce(q.id::text, ''), coalesce(q.version, 0),
		       coalesce((v.content -> 'limit')::text, '')
		FROM ration.override AS o
		JOIN ration.policy AS p ON p.number = o.policy
		LEFT JOIN ration.policy AS q ON q.number = o.limited
		LEFT JOIN ration.policy_version AS v ON v.number = q.number AND v.version = q.version
		WHERE p.generation > $1`, since)
	if err != nil {
		return err
	}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (none struct{}, err error) {
		var number, limited int32
		var key policy.Key
		var attributes map[string]string
		var action, id, limit string
		var version int
		err = row.Scan(&number, &key, &attributes, &action, &limited, &id, &version, &limit)
		if err != nil {
			return none, err
		}
		installed := numbered[number]
		override, err := readOverride(installed, action, limited, id, version, limit, attributes)
		if err != nil {
			return none, fmt.Errorf("an override of policy %s, as stored: %w", installed.ID, err)
		}
		if installed.Overrides == nil {
			installed.Overrides = make(map[policy.Key]policy.Override)
		}
		installed.Overrides[key] = override
		return none, nil
	})
	return err
}

// readOverride makes the override of a policy in force: with another limit it
// is the policy with that limit, under the number and the id of its own.
func readOverride(
	of *policy.Installed, action string, number int32, id string, version int, stored string, attributes map[string]string,
) (override policy.Override, err error) {
	var limit *policy.Limit
	override.Action, limit, err = readAction(action, stored)
	if err != nil || limit == nil {
		return override, err
	}
	spec := *of.Spec
	spec.Limit = *limit
	override.Limited = &policy.Installed{
		Number: number, ID: of.ID, Version: version, Spec: &spec, Mode: of.Mode, InstalledAtMicros: of.InstalledAtMicros,
	}
	var values [policy.AttributeCount]string
	err = readAttributes(attributes, &values)
	override.Key = policy.KeyOf(id, &spec, &values)
	return override, err
}
