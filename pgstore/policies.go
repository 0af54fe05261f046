package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// installedSQL reads versions of policies.
const installedSQL = `
	SELECT p.number, split_part(p.id::text, '!', 1), v.version, v.content::text, v.deleted, v.installed_at, v.version = p.version AND p.mode = 'shadow'
	FROM ration.policy AS p JOIN ration.policy_version AS v USING (number)
	WHERE `

// Put installs a version of a policy with its audit row, in one transaction,
// and tells every instance. A version other than put.Expected in force is
// version-conflict; content that is in force already installs nothing.
func (s *Store) Put(ctx context.Context, put policy.Put) (installed *policy.Installed, changed bool, err error) {
	return s.putAt(ctx, put, 0)
}

// putAt is Put at an instant of a test clock; 0 in production.
func (s *Store) putAt(ctx context.Context, put policy.Put, nowMicros int64) (installed *policy.Installed, changed bool, err error) {
	err = s.control(ctx, "install a policy", func(ctx context.Context, tx pgx.Tx) (err error) {
		installed, changed, err = putIn(ctx, tx, put, nowMicros)
		return err
	})
	return installed, changed, err
}

// putIn is Put within a transaction, which an error ends without any change.
func putIn(ctx context.Context, tx pgx.Tx, put policy.Put, nowMicros int64) (installed *policy.Installed, changed bool, err error) {
	limit := &put.Change.Spec.Limit
	var outcome string
	var version int
	var restarts []string
	rate := storedRate(limit)
	err = tx.QueryRow(ctx, `
		SELECT r.o_outcome, r.o_version, r.o_restarts
		FROM ration.put_policy_v1($1, $2, $3::json, $4, $5, $6, $7, nullif($8, ''), $9, $10, $11, $12, nullif($13::bigint, 0)) AS r`,
		put.ID, put.Expected, string(put.Change.Spec.JSON()), rate.N, rate.D, limit.Capacity,
		put.Change.Balances.String(), put.Change.Start.String(), put.Actor, put.Role.String(), put.Change.Reason, put.RequestID,
		nowMicros).Scan(&outcome, &version, &restarts)
	switch {
	case err != nil:
		return nil, false, err
	case outcome == "conflict":
		return nil, false, versionConflict("The policy's version in force is not the one that this change replaces.")
	case outcome == "restart":
		return nil, false, needsRestart(restarts)
	case outcome == "needs-reset":
		return nil, false, needsReset()
	case outcome == "overridden":
		return nil, false, overridden(restarts)
	}
	changed = outcome != "unchanged"
	installed, err = one(tx.Query(ctx, installedSQL+"p.id = $1 AND v.version = $2", put.ID, version))
	return installed, changed, err
}

// storedRate is the rate of a limit as it is stored: of one that is no token
// bucket, tokens are the units.
func storedRate(limit *policy.Limit) policy.Rate {
	if limit.Algorithm != policy.TokenBucket {
		return policy.Rate{N: 1, D: 1}
	}
	return limit.Rate
}

// versionConflict tells that another version is in force than the one named.
func versionConflict(detail string) error {
	return &policy.Error{Code: policy.CodeConflict, Reason: policy.ReasonVersionConflict, Detail: detail}
}

// needsRestart refuses a change after which the policy would keep other state
// than before, so that no balance could be carried over, and which does not say
// that what was kept counts no more.
func needsRestart(members []string) error {
	faults := make([]policy.Fault, len(members))
	for i, member := range members {
		faults[i] = policy.Fault{
			Pointer: "/" + strings.ReplaceAll(member, ",", "/"),
			Detail:  `says which state the policy keeps: it changes only with "balances": "restart" and "start": "full" or "empty"`,
		}
	}
	return policy.Invalid(policy.ReasonPolicyInvalid, "The policy would keep other state than before.", faults...)
}

// needsReset refuses to bring a deleted policy back as if it had gone on.
func needsReset() error {
	return policy.Invalid(policy.ReasonPolicyInvalid, "The policy was deleted.", policy.Fault{
		Pointer: "/balances", Detail: "must be reset or restart: what the policy kept before it was deleted counts no more",
	})
}

// Get gives a policy's version in force, or not-found.
func (s *Store) Get(ctx context.Context, id string) (installed *policy.Installed, err error) {
	err = s.control(ctx, "read a policy", func(ctx context.Context, tx pgx.Tx) error {
		installed, err = one(tx.Query(ctx, installedSQL+"p.id = $1 AND v.version = p.version", id))
		if err == nil && installed.Deleted {
			err = wasDeleted(installed)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return installed, nil
}

// Version gives one version of a policy, or not-found.
func (s *Store) Version(ctx context.Context, id string, version int) (installed *policy.Installed, err error) {
	err = s.control(ctx, "read a policy's version", func(ctx context.Context, tx pgx.Tx) error {
		installed, err = one(tx.Query(ctx, installedSQL+"p.id = $1 AND v.version = $2", id, version))
		return err
	})
	return installed, err
}

// Installed gives the versions that decided parts, in force or not. What it
// gives tells not-found of any other.
func (s *Store) Installed(ctx context.Context, parts []policy.Part) (find policy.Find, err error) {
	err = s.operate(ctx, "read the versions that decided", func(ctx context.Context, conn *pgx.Conn) error {
		find, err = readVersions(ctx, conn, parts)
		return err
	})
	return find, err
}

// List gives the versions in force of at most limit policies behind the id
// after, ascending by id.
func (s *Store) List(ctx context.Context, after string, limit int) (installed []*policy.Installed, err error) {
	err = s.control(ctx, "list policies", func(ctx context.Context, tx pgx.Tx) error {
		// Ids are ordered by their bytes, as everywhere in the program, whatever the database's collation.
		installed, err = all(tx.Query(ctx, installedSQL+`v.version = p.version AND p.id::text COLLATE "C" > $1 AND p.parent IS NULL AND NOT v.deleted
			ORDER BY p.id::text COLLATE "C" LIMIT $2`, after, limit))
		return err
	})
	return installed, err
}

// Versions gives at most limit versions of a policy behind the version after,
// the oldest first; not-found when there is no such policy.
func (s *Store) Versions(ctx context.Context, id string, after, limit int) (installed []*policy.Installed, err error) {
	err = s.control(ctx, "list a policy's versions", func(ctx context.Context, tx pgx.Tx) error {
		installed, err = all(tx.Query(ctx, installedSQL+"p.id = $1 AND v.version > $2 ORDER BY v.version LIMIT $3", id, after, limit))
		if err == nil && len(installed) == 0 && after == 0 {
			return notFound()
		}
		return err
	})
	return installed, err
}

// Load gives the generation in force and the policies whose version in force
// is newer than the generation since, or whose overrides or mode are,
// tombstones of deleted ones among them, each with all its overrides; 0 gives
// all.
func (s *Store) Load(ctx context.Context, since int64) (generation int64, changed []*policy.Installed, err error) {
	err = s.control(ctx, "load policies", func(ctx context.Context, tx pgx.Tx) error {
		// One snapshot for all: a policy that changes between two statements is no part of the generation before.
		if _, err := tx.Exec(ctx, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, "SELECT s.generation FROM ration.policy_set AS s").Scan(&generation); err != nil {
			return err
		}
		if generation == since {
			return nil
		}
		var err error
		changed, err = all(tx.Query(ctx, installedSQL+"v.version = p.version AND p.generation > $1 AND p.parent IS NULL", since))
		if err != nil {
			return err
		}
		return loadOverrides(ctx, tx, since, changed)
	})
	return generation, changed, err
}

// one reads the one row of a query of [installedSQL].
func one(rows pgx.Rows, err error) (*policy.Installed, error) {
	if err != nil {
		return nil, err
	}
	installed, err := pgx.CollectExactlyOneRow(rows, readInstalled)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, notFound()
	}
	return installed, err
}

// all reads every row of a query of [installedSQL].
func all(rows pgx.Rows, err error) ([]*policy.Installed, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, readInstalled)
}

func readInstalled(row pgx.CollectableRow) (*policy.Installed, error) {
	installed := new(policy.Installed)
	var content string
	var shadowed bool // the version in force is a shadow, by its content or by a kill switch
	err := row.Scan(&installed.Number, &installed.ID, &installed.Version, &content, &installed.Deleted, &installed.InstalledAtMicros,
		&shadowed)
	if err != nil {
		return nil, err
	}
	if installed.Spec, err = policy.ParseSpec([]byte(content)); err != nil {
		return nil, fmt.Errorf("policy %s, version %d, as stored: %w", installed.ID, installed.Version, err)
	}
	if installed.Mode = installed.Spec.Mode; shadowed {
		installed.Mode = policy.Shadow
	}
	return installed, nil
}

func notFound() error {
	return &policy.Error{Code: policy.CodeNotFound, Reason: policy.ReasonNotFound, Detail: "There is no such policy or version."}
}
