package pgstore

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// errTried ends a savepoint whose changes were only tried.
var errTried = errors.New("tried, not made")

// DryRun tells what Put would do: it makes the change, looks, and takes it
// back, so that it fails where Put would.
func (s *Store) DryRun(ctx context.Context, put policy.Put) (*policy.DryRun, error) {
	run := new(policy.DryRun)
	err := s.control(ctx, "try a policy change", func(ctx context.Context, tx pgx.Tx) (err error) {
		run.Before, err = one(tx.Query(ctx, installedSQL+"p.id = $1 AND v.version = p.version AND NOT v.deleted", put.ID))
		if err != nil && !isNotFound(err) {
			return err
		}
		if run.Before != nil && put.Change.Balances == policy.Restart {
			if run.Restarts, err = restartsOf(ctx, tx, put); err != nil {
				return err
			}
		}
		changed, err := tryPut(ctx, tx, put)
		run.Unchanged = !changed
		return err
	})
	if err == nil && run.Before != nil && !run.Unchanged {
		run.Balances, err = s.countBalances(ctx, put.ID, put.Change, countBalancesMax, 0)
	}
	if err != nil {
		return nil, err
	}
	return run, nil
}

// restartsOf gives the members for which a change restarts the state: those for
// which it would be refused if it did not say so.
func restartsOf(ctx context.Context, tx pgx.Tx, put policy.Put) (pointers []string, err error) {
	keeping := *put.Change
	keeping.Balances, keeping.Start = policy.Keep, policy.StartNone
	put.Change = &keeping
	_, err = tryPut(ctx, tx, put)
	if known, ok := errors.AsType[*policy.Error](err); ok && known.Reason == policy.ReasonPolicyInvalid {
		for _, fault := range known.Faults {
			pointers = append(pointers, fault.Pointer)
		}
		return pointers, nil
	}
	return nil, err
}

// tryPut makes a change and takes it back.
func tryPut(ctx context.Context, tx pgx.Tx, put policy.Put) (changed bool, err error) {
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		_, changed, err = putIn(ctx, tx, put, 0)
		return cmp.Or(err, errTried)
	})
	if errors.Is(err, errTried) {
		err = nil
	}
	return changed, err
}

func isNotFound(err error) bool {
	known, ok := errors.AsType[*policy.Error](err)
	return ok && known.Code == policy.CodeNotFound
}
