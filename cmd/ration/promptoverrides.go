package main

import (
	"context"

	"github.com/rationhq/ration/policy"
)

// PutOverride sets an override in the store and waits until it is in force
// here.
func (p *promptPolicies) PutOverride(ctx context.Context, put policy.OverridePut) (record *policy.OverrideRecord, created bool, err error) {
	record, created, generation, err := p.Store.PutOverride(ctx, put)
	if err == nil {
		p.awaitGeneration(ctx, generation)
	}
	return record, created, err
}

// RemoveOverride takes an override away in the store and waits until it is
// gone here.
func (p *promptPolicies) RemoveOverride(ctx context.Context, removal policy.OverrideRemoval) error {
	generation, err := p.Store.RemoveOverride(ctx, removal)
	if err == nil {
		p.awaitGeneration(ctx, generation)
	}
	return err
}

// ThrowKillSwitch throws a kill switch in the store and waits until it lies
// here.
func (p *promptPolicies) ThrowKillSwitch(
	ctx context.Context, throw policy.KillSwitchThrow,
) (lies *policy.KillSwitch, policies int, err error) {
	lies, policies, generation, err := p.Store.ThrowKillSwitch(ctx, throw)
	if err == nil {
		p.awaitGeneration(ctx, generation)
	}
	return lies, policies, err
}

// TakeBackKillSwitch takes a kill switch back in the store and waits until it
// is gone here.
func (p *promptPolicies) TakeBackKillSwitch(ctx context.Context, taken policy.KillSwitchReturn) error {
	generation, err := p.Store.TakeBackKillSwitch(ctx, taken)
	if err == nil {
		p.awaitGeneration(ctx, generation)
	}
	return err
}

// awaitGeneration waits until a generation is in force here. The change is made, which is
// what was asked: the answer must not say otherwise where that takes long.
func (p *promptPolicies) awaitGeneration(ctx context.Context, generation int64) {
	waiting, cancel := context.WithTimeout(ctx, promptMax)
	defer cancel()
	if err := p.limiter.AwaitGeneration(waiting, generation); err != nil {
		p.log.WarnContext(ctx, "a change is not in force in this instance yet", "generation", generation, "error", err)
	}
}
