package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// Confirm says that an instance lives, and that what it answers from now on is
// of its Generation. It notes in the instance when it was seen and, the first
// time, when it started.
func (s *Store) Confirm(ctx context.Context, instance *policy.Instance) error {
	return s.confirmAt(ctx, instance, 0)
}

// confirmAt is Confirm at an instant of a test clock; 0 in production.
func (s *Store) confirmAt(ctx context.Context, instance *policy.Instance, nowMicros int64) error {
	return s.control(ctx, "confirm the policies in force", func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT c.o_at, c.o_started_at
			FROM ration.confirm_v1($1, $2, $3, nullif($4::bigint, 0), $5, nullif($6::bigint, 0)) AS c`,
			instance.ID, instance.Name, instance.Version, instance.StartedAtMicros, instance.Generation, nowMicros,
		).Scan(&instance.SeenAtMicros, &instance.StartedAtMicros)
	})
}

// Leave takes an instance that ends off the list.
func (s *Store) Leave(ctx context.Context, id policy.InstanceID) error {
	return s.control(ctx, "leave the list of instances", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT ration.leave_v1($1)", id)
		return err
	})
}

// Instances gives the generation of the policy set and all instances that were
// seen within 10 minutes, by name and start.
func (s *Store) Instances(ctx context.Context) (generation int64, instances []policy.Instance, err error) {
	err = s.control(ctx, "list the instances", func(ctx context.Context, tx pgx.Tx) (err error) {
		// Generation first: an instance that has confirmed a later one has this one too.
		if err = tx.QueryRow(ctx, "SELECT s.generation FROM ration.policy_set AS s").Scan(&generation); err != nil {
			return err
		}
		instances, err = readInstances(ctx, tx)
		return err
	})
	return generation, instances, err
}

// Installation gives a policy's version in force and the instances, or
// not-found.
func (s *Store) Installation(ctx context.Context, id string) (policy.Installation, error) {
	installation := policy.Installation{ID: id}
	err := s.control(ctx, "read where a policy is in force", func(ctx context.Context, tx pgx.Tx) (err error) {
		err = tx.QueryRow(ctx, `SELECT p.version, p.generation FROM ration.policy AS p
			WHERE p.id = $1 AND p.mode <> 'deleted' AND p.parent IS NULL`, id).Scan(&installation.Version, &installation.Generation)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return notFound()
		case err != nil:
			return err
		}
		installation.Instances, err = readInstances(ctx, tx)
		return err
	})
	return installation, err
}

func readInstances(ctx context.Context, tx pgx.Tx) ([]policy.Instance, error) {
	rows, err := tx.Query(ctx, `SELECT i.o_id, i.o_name, i.o_version, i.o_started_at, i.o_seen_at, i.o_generation, i.o_alive, i.o_awaited
		FROM ration.instances_v1() AS i`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (i policy.Instance, err error) {
		err = row.Scan(&i.ID, &i.Name, &i.Version, &i.StartedAtMicros, &i.SeenAtMicros, &i.Generation, &i.Alive, &i.Awaited)
		return i, err
	})
}
