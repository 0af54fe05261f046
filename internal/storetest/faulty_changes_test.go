package storetest

import (
	"context"

	"github.com/rationhq/ration/policy"
)

// rewording takes what a change says of the balances for something else.
type rewording struct {
	Store

	reword func(*policy.Change)
}

func (r rewording) Install(
	ctx context.Context, id string, change *policy.Change, expected int, nowMicros int64,
) (*policy.Installed, error) {
	reworded := *change
	r.reword(&reworded)
	return r.Store.Install(ctx, id, &reworded, expected, nowMicros)
}

func keepScaled(c *policy.Change) {
	if c.Balances == policy.Scale {
		c.Balances = policy.Keep
	}
}

func resetKept(c *policy.Change) {
	if c.Balances == policy.Keep && c.Spec.Limit.Algorithm != policy.Concurrency {
		c.Balances = policy.Reset
	}
}

func fillEmpty(c *policy.Change) {
	if c.Start == policy.StartEmpty {
		c.Start = policy.StartFull
	}
}

func restartAnything(c *policy.Change) {
	if c.Balances == policy.Keep {
		c.Balances, c.Start = policy.Restart, policy.StartFull
	}
}

// remembering keeps what a reset should take, where the policy was not deleted.
type remembering struct{ Store }

func (r remembering) Install(
	ctx context.Context, id string, change *policy.Change, expected int, nowMicros int64,
) (*policy.Installed, error) {
	if change.Balances == policy.Reset && expected > 0 {
		kept := *change
		kept.Balances = policy.Keep
		change = &kept
	}
	return r.Store.Install(ctx, id, change, expected, nowMicros)
}

// undead brings a deleted policy back whatever version is named.
type undead struct {
	Store

	deleted map[string]bool
}

func (u undead) Delete(ctx context.Context, id string, expected int, nowMicros int64) error {
	err := u.Store.Delete(ctx, id, expected, nowMicros)
	if err == nil {
		u.deleted[id] = true
	}
	return err
}

func (u undead) Install(
	ctx context.Context, id string, change *policy.Change, expected int, nowMicros int64,
) (*policy.Installed, error) {
	if u.deleted[id] {
		expected = 0
	}
	installed, err := u.Store.Install(ctx, id, change, expected, nowMicros)
	if err == nil {
		delete(u.deleted, id)
	}
	return installed, err
}
